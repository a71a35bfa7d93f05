//! Route tables whose handlers are also the operations of an OpenAPI document.

/// Declares a route table, `TABLE`, from rows as in [`http_kit::table`], and the operations of its
/// handlers, `Operations`.
macro_rules! described_table {
    ($surface:ident: $($method:ident $path:literal, $limiter:expr $(, $property:ident($($value:expr),+))*
        => $($handler:ident)::+;)*) => {
        static TABLE: &[http_kit::Entry<http_kit::Shared>] = http_kit::table! { $surface:
            $($method $path, $limiter $(, $property($($value),+))* => $($handler)::+;)*
        };

        #[derive(utoipa::OpenApi)]
        #[openapi(paths($($($handler)::+),*))]
        pub(crate) struct Operations;
    };
}
pub(crate) use described_table;
