//! What each file of a directory holds, by its name: `PE12_my_phase_2_send.csv`, `PE0_PAPI.csv.zst`, `Overall.txt`.

use std::path::Path;

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Sends of a PE.
    Send { phase: Option<String>, pe: i32 },
    /// What a PE handled.
    Papi { phase: Option<String>, pe: i32 },
    /// Cycles of all PEs.
    Overall,
    /// Aggregated buffers of all PEs.
    Physical,
}

/// The kind of a file by its name, in any case.
pub(super) fn kind(path: &Path) -> Option<Kind> {
    let name = path.file_name()?.to_str()?;
    let name = without(name, ".gz").or_else(|| without(name, ".zst")).unwrap_or(name);
    if name.eq_ignore_ascii_case("overall.txt") {
        return Some(Kind::Overall);
    }
    if name.eq_ignore_ascii_case("physical.txt") {
        return Some(Kind::Physical);
    }
    let stem = without(name, ".csv").or_else(|| without(name, ".dat"))?;
    let (rest, is_send) = match (without(stem, "_send"), without(stem, "_PAPI")) {
        (Some(rest), _) => (rest, true),
        (None, Some(rest)) => (rest, false),
        (None, None) => return None,
    };
    let rest = rest.get(..2).filter(|pe| pe.eq_ignore_ascii_case("PE")).and_then(|_| rest.get(2..))?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let pe = rest[..digits].parse::<i32>().ok().filter(|pe| i64::from(*pe) <= super::line::PE_MAX)?;
    let phase = match &rest[digits..] {
        "" => None,
        phase => Some(phase.strip_prefix('_').filter(|phase| !phase.is_empty())?.to_owned()),
    };
    Some(if is_send { Kind::Send { phase, pe } } else { Kind::Papi { phase, pe } })
}

fn without<'n>(name: &'n str, suffix: &str) -> Option<&'n str> {
    let at = name.len().checked_sub(suffix.len())?;
    name.get(at..).filter(|end| end.eq_ignore_ascii_case(suffix)).map(|_| &name[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_pe_and_phase() {
        let check = |name: &str, expected| assert_eq!(kind(Path::new(name)), expected, "{name}");
        check("d/PE0_send.csv", Some(Kind::Send { phase: None, pe: 0 }));
        check("PE12_my_phase_2_send.csv", Some(Kind::Send { phase: Some("my_phase_2".to_owned()), pe: 12 }));
        check("PE3_a_PAPI.csv.zst", Some(Kind::Papi { phase: Some("a".to_owned()), pe: 3 }));
        check("pe0_papi.csv", Some(Kind::Papi { phase: None, pe: 0 }));
        check("PE0_send.dat.gz", Some(Kind::Send { phase: None, pe: 0 }));
        check("Overall.txt", Some(Kind::Overall));
        check("physical.txt.zst", Some(Kind::Physical));
        for other in
            ["PE_send.csv", "PE1__send.csv", "PE1send.csv", "PE1_send.txt", "send.csv", "PE99999999999_send.csv", "é"]
        {
            check(other, None);
        }
    }
}
