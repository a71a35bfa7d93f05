//! Schemas of the envelopes that [`http_kit`] wraps around records.

use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};

/// Declares response bodies as types that a route's annotation can refer to: `MarketAnswer =
/// single("market", MarketRecord);`, `MarketList = list(MarketRecord);`, `Positions =
/// plain(PositionRecord);` or `Either = one_of(MarketAnswer, MarketList);`.
macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident = $form:ident($($member:literal,)? $($part:ty),+);)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        // Only the schema of the type is used, so it has no values.
        pub enum $name {}

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                let parts = [$(<$part as utoipa::ToSchema>::name()),+];
                $crate::openapi::answers::$form($($member,)? &parts)
            }
        }

        impl utoipa::ToSchema for $name {
            fn schemas(out: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>) {
                $(
                    out.push((
                        <$part as utoipa::ToSchema>::name().into_owned(),
                        <$part as utoipa::PartialSchema>::schema(),
                    ));
                    <$part as utoipa::ToSchema>::schemas(out);
                )+
            }
        }
    )*};
}
pub(crate) use answers;

fn named(name: &str) -> Ref {
    Ref::from_schema_name(name)
}

fn object() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Object)
}

fn built(object: ObjectBuilder) -> RefOr<Schema> {
    let object = object.property("_meta", named("Meta")).required("_meta");
    RefOr::T(Schema::Object(object.build()))
}

/// One resource, under its own name and under `data`.
pub(crate) fn single(member: &str, parts: &[impl AsRef<str>; 1]) -> RefOr<Schema> {
    let [record] = parts;
    let record = || named(record.as_ref());
    built(object().property(member, record()).required(member).property("data", record()).required("data"))
}

pub(crate) fn list(parts: &[impl AsRef<str>; 1]) -> RefOr<Schema> {
    let [record] = parts;
    let data = ArrayBuilder::new().items(named(record.as_ref()));
    let object = object().property("data", data).required("data");
    built(object.property("pagination", named("Pagination")).required("pagination"))
}

/// A list without pagination.
pub(crate) fn plain(parts: &[impl AsRef<str>; 1]) -> RefOr<Schema> {
    let [record] = parts;
    let data = ArrayBuilder::new().items(named(record.as_ref()));
    built(object().property("data", data).required("data"))
}

/// One of several responses.
pub(crate) fn one_of(parts: &[impl AsRef<str>]) -> RefOr<Schema> {
    let schemas = parts.iter().map(|part| named(part.as_ref()));
    RefOr::T(Schema::OneOf(schemas.fold(OneOfBuilder::new(), OneOfBuilder::item).build()))
}
