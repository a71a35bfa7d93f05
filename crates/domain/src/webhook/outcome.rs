//! Outcomes of delivery attempts, and their descriptions for the owner of the key.

/// A network error below HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NetworkFault {
    /// The receiver's name does not resolve to an address.
    Dns,
    /// The connection could not be established.
    Connect,
    /// The TLS handshake failed.
    Tls,
    /// The connection closed before the response was complete.
    Cut,
}

impl NetworkFault {
    pub const ALL: [Self; 4] = [Self::Dns, Self::Connect, Self::Tls, Self::Cut];

    /// Returns the failure code of a delivery.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dns => "DNS",
            Self::Connect => "CONNECTION",
            Self::Tls => "TLS",
            Self::Cut => "CUT",
        }
    }

    const fn message(self) -> &'static str {
        match self {
            Self::Dns => "The receiver's host name could not be resolved.",
            Self::Connect => "The connection to the receiver failed.",
            Self::Tls => "The TLS handshake with the receiver failed.",
            Self::Cut => "The connection closed before the receiver answered.",
        }
    }
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The receiver responded.
    Answered {
        status: u16,
        /// The value of `Retry-After`.
        retry_after_ms: Option<i64>,
    },
    /// No complete response arrived in time.
    TimedOut,
    /// The receiver could not be reached.
    Unreachable(NetworkFault),
    /// Nothing was sent, because the target policy does not allow the receiver's address.
    TargetRefused,
    /// Nothing was sent, because no signing secret was available.
    Unsigned,
}

/// The consequence of an outcome for the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The receiver has the event.
    Delivered,
    /// Another attempt may succeed.
    Transient,
    /// Another attempt would end the same way.
    Terminal,
}

impl AttemptOutcome {
    /// Returns the consequence for the event. Redirects are not followed, so they are not a final
    /// response. Unassigned statuses count as transient too, because they come from a receiver that
    /// is temporarily broken.
    pub const fn class(self) -> Class {
        match self {
            Self::Answered { status: 200..300, .. } => Class::Delivered,
            // Must come before the range of 4xx, which is otherwise terminal.
            Self::Answered { status: 408 | 429, .. } => Class::Transient,
            Self::Answered { status: 400..500, .. } | Self::TargetRefused => Class::Terminal,
            Self::Answered { .. } | Self::TimedOut | Self::Unreachable(_) | Self::Unsigned => {
                Class::Transient
            }
        }
    }

    /// Returns true if the endpoint's breaker counts this outcome as a failure.
    ///
    /// - A receiver that rejects an event is reachable. Pausing later events would not help.
    /// - A refused address reaches no receiver. Pausing avoids an immediate failure for each
    ///   waiting event.
    /// - A missing secret says nothing about the receiver.
    pub const fn is_endpoint_failure(self) -> bool {
        match self {
            Self::TargetRefused => true,
            Self::Unsigned => false,
            _ => matches!(self.class(), Class::Transient),
        }
    }

    /// Returns the value of `Retry-After`, if the receiver sent one.
    pub const fn retry_after_ms(self) -> Option<i64> {
        match self {
            Self::Answered { retry_after_ms, .. } => retry_after_ms,
            _ => None,
        }
    }

    /// Returns a code for programs; `None` if the event was delivered. The retried statuses 408 and
    /// 429 have their own codes, so that `HTTP_4XX` always means a final failure.
    pub const fn failure_code(self) -> Option<&'static str> {
        Some(match self {
            Self::Answered { status: 200..300, .. } => return None,
            Self::Answered { status: 100..200, .. } => "HTTP_1XX",
            Self::Answered { status: 300..400, .. } => "HTTP_3XX",
            Self::Answered { status: 408, .. } => "HTTP_408",
            Self::Answered { status: 429, .. } => "HTTP_429",
            Self::Answered { status: 400..500, .. } => "HTTP_4XX",
            Self::Answered { status: 500..600, .. } => "HTTP_5XX",
            Self::Answered { .. } => "HTTP_INVALID",
            Self::TimedOut => "TIMEOUT",
            Self::Unreachable(fault) => fault.as_str(),
            Self::TargetRefused => "TARGET_NOT_ALLOWED",
            Self::Unsigned => "SECRET_UNREADABLE",
        })
    }

    /// Returns an explanation for people; `None` if the event was delivered. It contains no part of
    /// the receiver's response or address.
    pub fn error_message(self) -> Option<String> {
        let message = match self {
            Self::Answered { status: 200..300, .. } => return None,
            Self::Answered { status: status @ 300..400, .. } => {
                return Some(format!("The receiver answered {status}. Redirects are not followed."));
            }
            Self::Answered { status, .. } => return Some(format!("The receiver answered {status}.")),
            Self::TimedOut => "The receiver did not answer within 10 seconds.",
            Self::Unreachable(fault) => fault.message(),
            Self::TargetRefused => "The webhook URL is not an allowed target.",
            Self::Unsigned => {
                "The key's webhook secret cannot be decrypted. Rotate it, or ask the operator to restore the sealing key."
            }
        };
        Some(message.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn answered(status: u16) -> AttemptOutcome {
        AttemptOutcome::Answered { status, retry_after_ms: None }
    }

    #[test]
    fn every_outcome_has_a_class_and_a_code() {
        for (outcome, class, code) in [
            (answered(200), Class::Delivered, None),
            (answered(204), Class::Delivered, None),
            (answered(299), Class::Delivered, None),
            (answered(0), Class::Transient, Some("HTTP_INVALID")),
            (answered(101), Class::Transient, Some("HTTP_1XX")),
            (answered(199), Class::Transient, Some("HTTP_1XX")),
            (answered(300), Class::Transient, Some("HTTP_3XX")),
            (answered(308), Class::Transient, Some("HTTP_3XX")),
            (answered(399), Class::Transient, Some("HTTP_3XX")),
            (answered(400), Class::Terminal, Some("HTTP_4XX")),
            (answered(407), Class::Terminal, Some("HTTP_4XX")),
            (answered(408), Class::Transient, Some("HTTP_408")),
            (answered(409), Class::Terminal, Some("HTTP_4XX")),
            (answered(410), Class::Terminal, Some("HTTP_4XX")),
            (answered(429), Class::Transient, Some("HTTP_429")),
            (answered(499), Class::Terminal, Some("HTTP_4XX")),
            (answered(500), Class::Transient, Some("HTTP_5XX")),
            (answered(599), Class::Transient, Some("HTTP_5XX")),
            (answered(600), Class::Transient, Some("HTTP_INVALID")),
            (answered(999), Class::Transient, Some("HTTP_INVALID")),
            (AttemptOutcome::TimedOut, Class::Transient, Some("TIMEOUT")),
            (AttemptOutcome::Unreachable(NetworkFault::Dns), Class::Transient, Some("DNS")),
            (AttemptOutcome::Unreachable(NetworkFault::Connect), Class::Transient, Some("CONNECTION")),
            (AttemptOutcome::Unreachable(NetworkFault::Tls), Class::Transient, Some("TLS")),
            (AttemptOutcome::Unreachable(NetworkFault::Cut), Class::Transient, Some("CUT")),
            (AttemptOutcome::TargetRefused, Class::Terminal, Some("TARGET_NOT_ALLOWED")),
        ] {
            assert_eq!((outcome.class(), outcome.failure_code()), (class, code), "{outcome:?}");
            assert_eq!(outcome.error_message().is_none(), code.is_none(), "{outcome:?}");
        }
    }

    #[test]
    fn retryable_and_forbidden_outcomes_are_endpoint_failures() {
        for (outcome, failed) in [
            (answered(200), false),
            (answered(400), false),
            (answered(410), false),
            (answered(302), true),
            (answered(408), true),
            (answered(429), true),
            (answered(503), true),
            (AttemptOutcome::TimedOut, true),
            (AttemptOutcome::Unreachable(NetworkFault::Tls), true),
            (AttemptOutcome::TargetRefused, true),
        ] {
            assert_eq!(outcome.is_endpoint_failure(), failed, "{outcome:?}");
        }
    }

    #[test]
    fn every_failure_is_reported_as_a_sentence() {
        let told = |outcome: AttemptOutcome| outcome.error_message().unwrap();
        assert_eq!(told(answered(503)), "The receiver answered 503.");
        assert_eq!(told(answered(302)), "The receiver answered 302. Redirects are not followed.");
        assert_eq!(told(AttemptOutcome::TimedOut), "The receiver did not answer within 10 seconds.");
        for fault in NetworkFault::ALL {
            assert!(told(AttemptOutcome::Unreachable(fault)).ends_with('.'));
        }
    }
}
