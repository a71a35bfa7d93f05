//! Parses positional parameters one by one. Omitted trailing parameters take their defaults, as in
//! other nodes.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::RpcError;

pub(super) struct Params<'a>(Vec<&'a RawValue>);

impl<'a> Params<'a> {
    pub fn parse(params: Option<&'a RawValue>) -> Result<Self, RpcError> {
        let Some(params) = params else { return Ok(Self(Vec::new())) };
        match serde_json::from_str(params.get()) {
            Ok(Some(values)) => Ok(Self(values)),
            Ok(None) => Ok(Self(Vec::new())),
            Err(_) => Err(RpcError::params("non-array args")),
        }
    }

    /// Returns the required parameter at `index`.
    pub fn get<T: Deserialize<'a>>(&self, index: usize) -> Result<T, RpcError> {
        let value = self.0.get(index);
        let value =
            value.ok_or_else(|| RpcError::params(format!("missing value for required argument {index}")))?;
        read(index, value)
    }

    /// Returns the optional parameter at `index`; `None` if it is omitted or null.
    pub fn find<T: Deserialize<'a>>(&self, index: usize) -> Result<Option<T>, RpcError> {
        self.0.get(index).map_or(Ok(None), |value| read(index, value))
    }
}

fn read<'a, T: Deserialize<'a>>(index: usize, value: &'a RawValue) -> Result<T, RpcError> {
    serde_json::from_str(value.get())
        .map_err(|error| RpcError::params(format!("invalid argument {index}: {error}")))
}
