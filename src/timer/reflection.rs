//! Reflection of a [`Timer`] as a struct. Times are in nanoseconds.

use core::num::{NonZeroU32, NonZeroU64};

use bevy_ecs::reflect::ReflectComponent;
use bevy_reflect::{
    FromReflect, GetTypeRegistration, NamedField, PartialReflect, ReflectFromPtr,
    ReflectFromReflect, TypeInfo, TypeRegistration, TypeRegistry, Typed,
    std_traits::ReflectDefault, structs::StructInfo, utility::NonGenericTypeInfoCell,
};
#[cfg(feature = "serialize")]
use bevy_reflect::{ReflectDeserialize, ReflectSerialize};

use super::{Arms, MissedTicks, Options, Timer, WhenDone};
use crate::{
    clock::ClockId,
    shown_fields::{ShownFields, reflect_as_struct},
};

/// The settings of a timer without extra settings.
static NO_OPTIONS: Options = Options {
    clock: None,
    since: None,
    jitter: 0,
    interval_span: 0,
    missed_ticks: MissedTicks::Burst,
    when_done: WhenDone::DespawnIfOwned,
    acts_without_clock: false,
};

reflect_as_struct!(Timer);

impl ShownFields for Timer {
    fn shown(&self, index: usize) -> Option<&dyn PartialReflect> {
        let extra = self.extra.as_deref();
        let options = extra.map_or(&NO_OPTIONS, |extra| &extra.options);
        Some(match index {
            0 => &self.delay,
            1 => &self.interval,
            2 => &self.times,
            3 => &options.clock,
            4 => &options.missed_ticks,
            5 => &options.since,
            6 => &options.jitter,
            7 => &options.interval_span,
            8 => &options.when_done,
            9 => &options.acts_without_clock,
            _ => return None,
        })
    }

    fn shown_mut(&mut self, index: usize) -> Option<&mut dyn PartialReflect> {
        Some(match index {
            0 => &mut self.delay,
            1 => &mut self.interval,
            2 => &mut self.times,
            3 => &mut self.options_mut().clock,
            4 => &mut self.options_mut().missed_ticks,
            5 => &mut self.options_mut().since,
            6 => &mut self.options_mut().jitter,
            7 => &mut self.options_mut().interval_span,
            8 => &mut self.options_mut().when_done,
            9 => &mut self.options_mut().acts_without_clock,
            _ => return None,
        })
    }

    fn detached(&self) -> Self {
        Arms::detached(self)
    }

    fn replace_by(&mut self, other: &Self) {
        *self = other.saved_or_clone();
    }
}

/// Fields that are missing have their defaults. Fails if a field has another type, or if a timer
/// without an interval should fire several times.
impl FromReflect for Timer {
    fn from_reflect(reflect: &dyn PartialReflect) -> Option<Self> {
        let fields = reflect.reflect_ref().as_struct().ok()?;
        let mut timer = Self::default();
        timer.try_apply(reflect).ok()?;
        if timer.interval.is_some() && fields.field("times").is_none() {
            timer.times = None;
        }
        let is_valid = match timer.interval {
            Some(_) => true,
            None => timer.times == Some(NonZeroU32::MIN) && timer.interval_span().is_none(),
        };
        is_valid.then_some(timer)
    }
}

impl Typed for Timer {
    fn type_info() -> &'static TypeInfo {
        static CELL: NonGenericTypeInfoCell = NonGenericTypeInfoCell::new();
        CELL.get_or_set(|| {
            TypeInfo::Struct(StructInfo::new::<Self>(&[
                NamedField::new::<u64>("delay"),
                NamedField::new::<Option<NonZeroU64>>("interval"),
                NamedField::new::<Option<NonZeroU32>>("times"),
                NamedField::new::<Option<ClockId>>("clock"),
                NamedField::new::<MissedTicks>("missed_ticks"),
                NamedField::new::<Option<u64>>("since"),
                NamedField::new::<u64>("jitter"),
                NamedField::new::<u64>("interval_span"),
                NamedField::new::<WhenDone>("when_done"),
                NamedField::new::<bool>("acts_without_clock"),
            ]))
        })
    }
}

impl GetTypeRegistration for Timer {
    fn get_type_registration() -> TypeRegistration {
        let mut registration = TypeRegistration::of::<Self>();
        registration.register_type_data::<ReflectFromPtr, Self>();
        registration.register_type_data::<ReflectFromReflect, Self>();
        registration.register_type_data::<ReflectComponent, Self>();
        registration.register_type_data::<ReflectDefault, Self>();
        #[cfg(feature = "serialize")]
        {
            registration.register_type_data::<ReflectSerialize, Self>();
            registration.register_type_data::<ReflectDeserialize, Self>();
        }
        registration
    }

    fn register_type_dependencies(registry: &mut TypeRegistry) {
        registry.register::<u64>();
        registry.register::<bool>();
        registry.register::<Option<u64>>();
        registry.register::<Option<NonZeroU64>>();
        registry.register::<Option<NonZeroU32>>();
        registry.register::<Option<ClockId>>();
        registry.register::<MissedTicks>();
        registry.register::<WhenDone>();
    }
}
