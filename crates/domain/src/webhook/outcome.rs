//! What became of one attempt to deliver an event, and how it reads to the owner of the key.

/// What went wrong below HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NetworkFault {
    /// The receiver's name has no address.
    Dns,
    /// No connection came about.
    Connect,
    /// No trust came about.
    Tls,
    /// The connection ended before the answer did.
    Cut,
}

impl NetworkFault {
    /// Every fault.
    pub const ALL: [Self; 4] = [Self::Dns, Self::Connect, Self::Tls, Self::Cut];

    /// The code of a delivery that failed in this way.
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
            Self::Dns => "The receiver's name could not be resolved.",
            Self::Connect => "No connection to the receiver could be made.",
            Self::Tls => "No TLS connection to the receiver could be made.",
            Self::Cut => "The connection ended before the receiver had answered.",
        }
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver answered.
    Answered {
        /// The answer's status.
        status: u16,
        /// How long the receiver asks to be left alone.
        retry_after_ms: Option<i64>,
    },
    /// No whole answer in time.
    TimedOut,
    /// The receiver could not be talked to.
    Unreachable(NetworkFault),
    /// Nothing was sent: the receiver's address is one that deliveries never go to.
    TargetRefused,
    /// Nothing was sent: there was nothing to sign it with.
    Unsigned,
}

/// What an outcome means for the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The receiver has it.
    Delivered,
    /// Another attempt may go better.
    Transient,
    /// Another attempt would end in the same way.
    Terminal,
}

impl Outcome {
    /// What this means for the event. A redirect is not followed, so it is no answer; neither is a status that HTTP does
    /// not know, since only a receiver that is broken for the moment gives it.
    pub const fn class(self) -> Class {
        match self {
            Self::Answered { status: 200..300, .. } => Class::Delivered,
            Self::Answered { status: 408 | 429, .. } => Class::Transient,
            Self::Answered { status: 400..500, .. } | Self::TargetRefused => Class::Terminal,
            Self::Answered { .. } | Self::TimedOut | Self::Unreachable(_) | Self::Unsigned => {
                Class::Transient
            }
        }
    }

    /// Whether the endpoint's breaker counts this as a failure. A receiver that refuses an event for good is reachable and
    /// judges what it is sent: pausing the events behind it would help nobody. An address that is refused reaches nobody,
    /// and trying it again at once for each waiting event would only be noise.
    /// Where nothing could be signed, nothing was learnt of the receiver.
    pub const fn is_endpoint_failure(self) -> bool {
        match self {
            Self::TargetRefused => true,
            Self::Unsigned => false,
            _ => matches!(self.class(), Class::Transient),
        }
    }

    /// How long the receiver asked to be left alone.
    pub const fn retry_after_ms(self) -> Option<i64> {
        match self {
            Self::Answered { retry_after_ms, .. } => retry_after_ms,
            _ => None,
        }
    }

    /// A word for programs; none where the event was delivered. The two statuses of 4xx that are tried again have words of
    /// their own, so that whoever reads `HTTP_4XX` knows that it was final.
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

    /// A sentence for people; none where the event was delivered. It holds nothing of what the receiver said or of where
    /// it lives.
    pub fn error_message(self) -> Option<String> {
        let message = match self {
            Self::Answered { status: 200..300, .. } => return None,
            Self::Answered { status: status @ 300..400, .. } => {
                return Some(format!("The receiver answered {status}; redirects are not followed."));
            }
            Self::Answered { status, .. } => return Some(format!("The receiver answered {status}.")),
            Self::TimedOut => "The receiver did not answer within 10 seconds.",
            Self::Unreachable(fault) => fault.message(),
            Self::TargetRefused => "The webhook's address is not one that deliveries go to.",
            Self::Unsigned => {
                "The key's webhook secret cannot be read here: rotate it, or have the operator restore its seal."
            }
        };
        Some(message.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn answered(status: u16) -> Outcome {
        Outcome::Answered { status, retry_after_ms: None }
    }

    #[test]
    fn every_outcome_has_its_class_and_its_code() {
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
            (Outcome::TimedOut, Class::Transient, Some("TIMEOUT")),
            (Outcome::Unreachable(NetworkFault::Dns), Class::Transient, Some("DNS")),
            (Outcome::Unreachable(NetworkFault::Connect), Class::Transient, Some("CONNECTION")),
            (Outcome::Unreachable(NetworkFault::Tls), Class::Transient, Some("TLS")),
            (Outcome::Unreachable(NetworkFault::Cut), Class::Transient, Some("CUT")),
            (Outcome::TargetRefused, Class::Terminal, Some("TARGET_NOT_ALLOWED")),
        ] {
            assert_eq!((outcome.class(), outcome.failure_code()), (class, code), "{outcome:?}");
            assert_eq!(outcome.error_message().is_none(), code.is_none(), "{outcome:?}");
        }
    }

    #[test]
    fn the_endpoint_has_failed_where_trying_again_may_help_and_where_it_may_not_be_reached() {
        for (outcome, failed) in [
            (answered(200), false),
            (answered(400), false),
            (answered(410), false),
            (answered(302), true),
            (answered(408), true),
            (answered(429), true),
            (answered(503), true),
            (Outcome::TimedOut, true),
            (Outcome::Unreachable(NetworkFault::Tls), true),
            (Outcome::TargetRefused, true),
        ] {
            assert_eq!(outcome.is_endpoint_failure(), failed, "{outcome:?}");
        }
    }

    #[test]
    fn a_failure_is_told_in_a_sentence() {
        let told = |outcome: Outcome| outcome.error_message().unwrap();
        assert_eq!(told(answered(503)), "The receiver answered 503.");
        assert_eq!(told(answered(302)), "The receiver answered 302; redirects are not followed.");
        assert_eq!(told(Outcome::TimedOut), "The receiver did not answer within 10 seconds.");
        for fault in NetworkFault::ALL {
            assert!(told(Outcome::Unreachable(fault)).ends_with('.'));
        }
    }
}
