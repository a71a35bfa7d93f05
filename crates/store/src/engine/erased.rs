//! A value whose type its owner does not show.

use std::any::Any;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// A value in a box that hides its type from the compiler's proofs.
///
/// For each future of each caller, the compiler proves that all it holds can be sent to another
/// thread. The proof ends at this box. Without it, the compiler walked through the types of the
/// PostgreSQL driver again for every unit of work, which took a third of the time that the crates
/// above this one take to compile.
pub(super) struct Erased<T> {
    value: Box<dyn Any + Send>,
    holds: PhantomData<fn() -> T>,
}

impl<T: Send + 'static> Erased<T> {
    pub fn new(value: T) -> Self {
        Self { value: Box::new(value), holds: PhantomData }
    }

    pub fn into_inner(self) -> T {
        match self.value.downcast() {
            Ok(value) => *value,
            Err(_) => unreachable!("`new` is the only constructor"),
        }
    }
}

impl<T: 'static> Deref for Erased<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self.value.downcast_ref() {
            Some(value) => value,
            None => unreachable!("`new` is the only constructor"),
        }
    }
}

impl<T: 'static> DerefMut for Erased<T> {
    fn deref_mut(&mut self) -> &mut T {
        match self.value.downcast_mut() {
            Some(value) => value,
            None => unreachable!("`new` is the only constructor"),
        }
    }
}
