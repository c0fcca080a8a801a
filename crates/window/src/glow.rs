//! The images: a dot and a ring, with soft edges.

use bevy::{
    asset::RenderAssetUsages,
    prelude::*,
    render::render_resource::{Extent3d, TextureDimension, TextureFormat},
};

pub fn plugin(app: &mut App) {
    app.add_systems(PreStartup, paint);
}

#[derive(Resource)]
pub struct Glow {
    pub dot: Handle<Image>,
    pub ring: Handle<Image>,
}

fn paint(mut images: ResMut<Assets<Image>>, mut commands: Commands) {
    let dot = white(16, |radius| (1.0 - radius) * 3.0);
    let ring = white(256, |radius| {
        let line = 1.0 - (radius - 0.97).abs() * 60.0;
        line.max(0.25 * radius * radius)
    });
    commands.insert_resource(Glow {
        dot: images.add(dot),
        ring: images.add(ring),
    });
}

/// Creates a white disc whose opacity depends on the distance from its centre.
fn white(size: u32, opacity: impl Fn(f32) -> f32) -> Image {
    let middle = (size - 1) as f32 / 2.0;
    let pixels = (0..size * size).flat_map(|index| {
        let place = Vec2::new((index % size) as f32, (index / size) as f32);
        let radius = place.distance(Vec2::splat(middle)) * 2.0 / size as f32;
        let opacity = if radius < 1.0 { opacity(radius) } else { 0.0 };
        [255, 255, 255, (opacity.clamp(0.0, 1.0) * 255.0) as u8]
    });
    Image::new(
        Extent3d {
            width: size,
            height: size,
            depth_or_array_layers: 1,
        },
        TextureDimension::D2,
        pixels.collect(),
        TextureFormat::Rgba8UnormSrgb,
        RenderAssetUsages::RENDER_WORLD,
    )
}
