//! The picture of all shots: one mesh, built anew in every frame.

use bevy::{
    asset::RenderAssetUsages,
    camera::visibility::NoFrustumCulling,
    mesh::{Indices, PrimitiveTopology},
    prelude::*,
    sprite_render::AlphaMode2d,
};

use crate::{glow::Glow, shots::Shot};

/// Half the size of a shot at the end of its flight.
const SIZE: f32 = 3.9;

pub fn plugin(app: &mut App) {
    app.add_systems(Startup, add_mesh).add_systems(Update, draw);
}

#[derive(Component)]
struct Swarm;

fn add_mesh(
    glow: Res<Glow>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<ColorMaterial>>,
    mut commands: Commands,
) {
    let material = ColorMaterial {
        alpha_mode: AlphaMode2d::Blend,
        texture: Some(glow.dot.clone()),
        ..default()
    };
    commands.spawn((
        Swarm,
        Mesh2d(meshes.add(Quads::default().into_mesh())),
        MeshMaterial2d(materials.add(material)),
        NoFrustumCulling,
    ));
}

fn draw(
    swarm: Single<&Mesh2d, With<Swarm>>,
    shots: Query<&Shot>,
    mut meshes: ResMut<Assets<Mesh>>,
) {
    let mut quads = Quads::default();
    for shot in &shots {
        quads.push(shot);
    }
    if let Some(mut mesh) = meshes.get_mut(&swarm.0) {
        *mesh = quads.into_mesh();
    }
}

struct Quads {
    places: Vec<[f32; 3]>,
    uvs: Vec<[f32; 2]>,
    colors: Vec<[f32; 4]>,
    indices: Vec<u32>,
}

/// An invisible point. A mesh cannot be empty.
impl Default for Quads {
    fn default() -> Self {
        Self {
            places: vec![[0.0; 3]],
            uvs: vec![[0.0; 2]],
            colors: vec![[0.0; 4]],
            indices: vec![0; 3],
        }
    }
}

impl Quads {
    fn push(&mut self, shot: &Shot) {
        let first = self.places.len() as u32;
        let size = SIZE * (0.6 + 0.4 * shot.part());
        let color = shot.color.to_f32_array();
        for corner in [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)] {
            let corner = Vec2::from(corner);
            let place = shot.place + size * corner;
            self.places.push(place.extend(0.0).into());
            self.uvs.push((0.5 + 0.5 * corner).into());
            self.colors.push(color);
        }
        self.indices
            .extend([0, 1, 2, 0, 2, 3].map(|corner| first + corner));
    }

    fn into_mesh(self) -> Mesh {
        let usages = RenderAssetUsages::default();
        Mesh::new(PrimitiveTopology::TriangleList, usages)
            .with_inserted_attribute(Mesh::ATTRIBUTE_POSITION, self.places)
            .with_inserted_attribute(Mesh::ATTRIBUTE_UV_0, self.uvs)
            .with_inserted_attribute(Mesh::ATTRIBUTE_COLOR, self.colors)
            .with_inserted_indices(Indices::U32(self.indices))
    }
}
