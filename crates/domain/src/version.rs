//! The versions of the API: the current one, earlier ones that are still served, and retired ones.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Earlier {
    /// The release date, which is also the version's name.
    pub date: &'static str,
    /// True if the version is no longer served.
    pub retired: bool,
}

/// All versions, past and present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// The version used if a request does not ask for another.
    pub current: &'static str,
    /// Newest first.
    pub earlier: &'static [Earlier],
}

pub const VERSIONS: Versions = Versions { current: "2026-04-29", earlier: &[] };

/// The reason why a version cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionRefusal {
    /// There never was a version with this name.
    Unknown,
    /// The version is no longer served.
    Retired,
}

impl Versions {
    /// Looks up a version by name.
    ///
    /// # Errors
    ///
    /// `Unknown` or `Retired`.
    pub fn find(&self, name: &str) -> Result<&'static str, VersionRefusal> {
        if name == self.current {
            return Ok(self.current);
        }
        match self.earlier.iter().find(|version| version.date == name) {
            Some(version) if version.retired => Err(VersionRefusal::Retired),
            Some(version) => Ok(version.date),
            None => Err(VersionRefusal::Unknown),
        }
    }

    /// Iterates over the names of the served versions, newest first.
    pub fn served(&self) -> impl Iterator<Item = &'static str> {
        let earlier = self.earlier.iter().filter(|version| !version.retired).map(|version| version.date);
        std::iter::once(self.current).chain(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Versions = Versions {
        current: "2027-01-01",
        earlier: &[
            Earlier { date: "2026-04-29", retired: false },
            Earlier { date: "2025-01-01", retired: true },
        ],
    };

    #[test]
    fn a_version_is_served_until_it_is_retired() {
        assert_eq!(SAMPLE.find("2027-01-01"), Ok("2027-01-01"));
        assert_eq!(SAMPLE.find("2026-04-29"), Ok("2026-04-29"));
        assert_eq!(SAMPLE.find("2025-01-01"), Err(VersionRefusal::Retired));
        for unknown in ["", "v1", "2026-4-29", "2026-04-29 ", "2028-01-01"] {
            assert_eq!(SAMPLE.find(unknown), Err(VersionRefusal::Unknown), "{unknown}");
        }
        assert_eq!(SAMPLE.served().collect::<Vec<_>>(), ["2027-01-01", "2026-04-29"]);
    }

    #[test]
    fn the_current_version_of_this_service_is_served() {
        assert_eq!(VERSIONS.find("2026-04-29"), Ok("2026-04-29"));
    }
}
