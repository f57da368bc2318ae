//! Event types: what the name of a type stands for, and how the bytes of an event's info become JSON.
//!
//! ```text
//! chol::TRSM        dc_key{uint64_t};priority{int32_t};dc_dataid{uint32_t};tcid{uint32_t};trc{int32_t};m{int32_t};k{int32_t}
//! MPI_DATA_PLD_SND  src{int32_t};dst{int32_t};tid{uint64_t};tpid{uint32_t};tcid{uint32_t};msg_size{int32_t};dep{int32_t}
//! ```
//! An info is a C struct: fields aligned to their size, nothing behind the last one.

use super::file::Entry;

/// What the events of a type record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// The body of a task; a flush of DTD is one whose body is the runtime's.
    Task {
        is_flush: bool,
    },
    Runtime,
    /// The runtime's work after a task, with the task's id.
    ReleaseDeps,
    Activate,
    Control,
    Send,
    Receive,
    /// Bytes that are taken at the start and given back at the end.
    Memory,
    /// Readings of hardware counters.
    Papi,
    Copy,
    User,
}

impl Class {
    fn of(name: &str, convertor: &str) -> Class {
        let (prefix, plain) = name.strip_prefix("PARSEC RUNTIME::").map_or((false, name), |plain| (true, plain));
        if convertor.starts_with("dc_key{") && convertor.contains("tcid{") && convertor.contains("trc{") {
            return Class::Task { is_flush: plain.ends_with("dtd_data_flush") };
        }
        match plain {
            "MPI_ACTIVATE" => Class::Activate,
            "MPI_DATA_CTL" => Class::Control,
            "MPI_DATA_PLD_SND" => Class::Send,
            "MPI_DATA_PLD_RCV" => Class::Receive,
            "RELEASE_DEPS" => Class::ReleaseDeps,
            "TASK_MEMORY" | "ARENA_MEMORY" | "ARENA_ACTIVE_SET" | "gpu_mem_alloc" | "gpu_mem_use" => Class::Memory,
            "movein" | "moveout" | "prefetch" => Class::Copy,
            "PREPARE_INPUT" | "SCHEDULE_TASKS" | "COMPLETE_EXEC" | "ACTIVATE_CB" | "DATA_FLUSH" | "SELECT_TASK"
            | "dtd_data_flush" | "gpu" | "Device delegate" | "MEMALLOC" => Class::Runtime,
            _ if prefix || plain.starts_with("Sched ") || plain.starts_with("Queue ") => Class::Runtime,
            _ if plain.starts_with("PINS_PAPI") => Class::Papi,
            _ => Class::User,
        }
    }

    /// `tasks.kind` and `tasks.role`.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            Class::Task { is_flush: false } => ("task", "work"),
            Class::Task { is_flush: true } => ("task", "runtime"),
            Class::Runtime | Class::ReleaseDeps => ("runtime", "runtime"),
            Class::Activate | Class::Control | Class::Send | Class::Receive => ("communication", "communication"),
            Class::Copy => ("copy", "copy"),
            Class::User | Class::Memory | Class::Papi => ("user", "work"),
        }
    }

    pub(super) fn is_message(self) -> bool {
        matches!(self, Class::Activate | Class::Control | Class::Send | Class::Receive)
    }
}

/// A type of events, ready to decode infos.
#[derive(Debug)]
pub(super) struct Type {
    pub(super) class: Class,
    pub(super) fields: Vec<Field>,
    /// Whether the infos have bytes that no field describes.
    is_raw: bool,
}

/// A field of an info.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    /// `"name":`, escaped.
    key: String,
    kind: Kind,
    at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Signed(usize),
    Unsigned(usize),
    Float(usize),
    Chars(usize),
}

impl Kind {
    fn of(word: &str) -> Option<Kind> {
        Some(match word {
            "int8_t" | "signed char" => Kind::Signed(1),
            "uint8_t" | "unsigned char" => Kind::Unsigned(1),
            "int16_t" | "short" => Kind::Signed(2),
            "uint16_t" | "unsigned short" => Kind::Unsigned(2),
            "int32_t" | "int" => Kind::Signed(4),
            "uint32_t" | "unsigned int" => Kind::Unsigned(4),
            "int64_t" | "long long" | "long" => Kind::Signed(8),
            "uint64_t" | "unsigned long long" | "unsigned long" => Kind::Unsigned(8),
            "float" => Kind::Float(4),
            "double" => Kind::Float(8),
            _ => Kind::Chars(word.strip_prefix("char[")?.strip_suffix(']')?.trim().parse().ok()?),
        })
    }

    fn bytes(self) -> usize {
        match self {
            Kind::Signed(bytes) | Kind::Unsigned(bytes) | Kind::Float(bytes) | Kind::Chars(bytes) => bytes,
        }
    }

    fn alignment(self) -> usize {
        if let Kind::Chars(_) = self { 1 } else { self.bytes() }
    }
}

impl Type {
    pub(super) fn of(entry: &Entry) -> Type {
        let mut fields = Vec::new();
        let mut at = 0usize;
        for item in entry.convertor.split(';').map(str::trim).filter(|item| !item.is_empty()) {
            let Some((name, word)) = item.strip_suffix('}').and_then(|item| item.split_once('{')) else { break };
            // An unknown type has an unknown length, so nothing behind it can be placed.
            let Some(kind) = Kind::of(word.trim()) else { break };
            let placed = at.checked_next_multiple_of(kind.alignment().max(1));
            let end = placed.and_then(|placed| placed.checked_add(kind.bytes()));
            let (Some(placed), Some(end)) = (placed, end.filter(|end| *end <= entry.info_bytes)) else { break };
            at = end;
            if name.starts_with("##") {
                continue;
            }
            let name = name.trim().replace(' ', "_");
            fields.push(Field { key: format!("{}:", serde_json::Value::from(name.as_str())), name, kind, at: placed });
        }
        let is_raw = entry.convertor.is_empty() && entry.info_bytes > 0;
        Type { class: Class::of(&entry.name, &entry.convertor), fields, is_raw }
    }

    pub(super) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The names of a task's local variables, which stand behind what all tasks have.
    pub(super) fn locals(&self) -> Vec<String> {
        let behind = self.fields.iter().position(|field| field.name == "trc").map_or(self.fields.len(), |at| at + 1);
        self.fields[behind..].iter().map(|field| field.name.clone()).collect()
    }

    /// Appends the members of a JSON object; `separate` when other members precede them.
    pub(super) fn members(&self, info: &[u8], big_endian: bool, separate: bool, json: &mut Vec<u8>) {
        let mut separate = separate;
        for field in &self.fields {
            if separate {
                json.push(b',');
            }
            separate = true;
            json.extend_from_slice(field.key.as_bytes());
            field.json(info, big_endian, json);
        }
        if self.is_raw {
            if separate {
                json.push(b',');
            }
            json.extend_from_slice(b"\"raw\":\"");
            for byte in info {
                json.extend_from_slice(&[
                    b"0123456789abcdef"[usize::from(byte >> 4)],
                    b"0123456789abcdef"[usize::from(byte & 15)],
                ]);
            }
            json.push(b'"');
        }
    }
}

impl Field {
    /// The number as a whole number; floats are truncated, text is 0.
    #[inline]
    pub(super) fn integer(&self, info: &[u8], big_endian: bool) -> i128 {
        let Some(bytes) = info.get(self.at..self.at + self.kind.bytes()) else { return 0 };
        match self.kind {
            Kind::Unsigned(_) => i128::from(unsigned(bytes, big_endian)),
            Kind::Signed(length) => {
                let shift = 64 - 8 * length;
                i128::from(((unsigned(bytes, big_endian) << shift) as i64) >> shift)
            }
            Kind::Float(_) => float(bytes, big_endian) as i128,
            Kind::Chars(_) => 0,
        }
    }

    pub(super) fn double(&self, info: &[u8], big_endian: bool) -> f64 {
        match (self.kind, info.get(self.at..self.at + self.kind.bytes())) {
            (Kind::Float(_), Some(bytes)) => float(bytes, big_endian),
            _ => self.integer(info, big_endian) as f64,
        }
    }

    /// Writes a double as what the field holds.
    #[cfg(feature = "hdf5")]
    pub(super) fn write_double(&self, info: &mut [u8], value: f64) {
        match self.kind {
            Kind::Float(4) => self.write(info, &(value as f32).to_le_bytes()),
            Kind::Unsigned(_) => self.write(info, &(value as u64).to_le_bytes()),
            Kind::Signed(_) => self.write(info, &(value as i64).to_le_bytes()),
            Kind::Float(_) | Kind::Chars(_) => self.write(info, &value.to_le_bytes()),
        }
    }

    /// Writes a value in little endian, cut to the length of the field.
    #[cfg(feature = "hdf5")]
    pub(super) fn write(&self, info: &mut [u8], value: &[u8]) {
        let length = value.len().min(self.kind.bytes());
        if let Some(field) = info.get_mut(self.at..self.at + length) {
            field.copy_from_slice(&value[..length]);
        }
    }

    fn json(&self, info: &[u8], big_endian: bool, json: &mut Vec<u8>) {
        let Some(bytes) = info.get(self.at..self.at + self.kind.bytes()) else {
            return json.extend_from_slice(b"null");
        };
        match self.kind {
            Kind::Unsigned(_) => decimal(unsigned(bytes, big_endian), json),
            Kind::Signed(_) => {
                let value = self.integer(info, big_endian);
                if value < 0 {
                    json.push(b'-');
                }
                decimal(value.unsigned_abs() as u64, json);
            }
            Kind::Float(length) => {
                let value = float(bytes, big_endian);
                // A float prints with the digits that it has, not with those of the double beside it.
                let number = if length == 4 { as_it_prints(value as f32) } else { value };
                json.extend_from_slice(serde_json::Value::from(number).to_string().as_bytes());
            }
            Kind::Chars(_) => {
                let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
                let text = String::from_utf8_lossy(&bytes[..end]);
                json.extend_from_slice(serde_json::Value::from(text.as_ref()).to_string().as_bytes());
            }
        }
    }
}

/// The double with the same shortest decimal as the float: 0.1f32 becomes 0.1.
fn as_it_prints(value: f32) -> f64 {
    value.to_string().parse().unwrap_or_else(|_| f64::from(value))
}

#[inline]
fn unsigned(bytes: &[u8], big_endian: bool) -> u64 {
    let mut number = [0u8; 8];
    number[..bytes.len()].copy_from_slice(bytes);
    if big_endian {
        number[..bytes.len()].reverse();
    }
    u64::from_le_bytes(number)
}

fn float(bytes: &[u8], big_endian: bool) -> f64 {
    let bits = unsigned(bytes, big_endian);
    if bytes.len() == 4 { f64::from(f32::from_bits(bits as u32)) } else { f64::from_bits(bits) }
}

/// Appends a number in decimal digits.
#[inline]
pub(super) fn decimal(mut number: u64, text: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, convertor: &str, info_bytes: usize) -> Entry {
        Entry { name: name.to_owned(), convertor: convertor.to_owned(), info_bytes }
    }

    #[test]
    fn names_and_convertors_tell_the_class() {
        let task = "dc_key{uint64_t};priority{int32_t};dc_dataid{uint32_t};tcid{uint32_t};trc{int32_t}";
        let check = |name, convertor, expected| assert_eq!(Class::of(name, convertor), expected, "{name}");
        check("chol::TRSM", task, Class::Task { is_flush: false });
        check("parsec_dtd_data_flush", task, Class::Task { is_flush: true });
        check(
            "old::TRSM",
            "dc_key{uint64_t};dc_dataid{uint32_t};tcid{int16_t};trc{int16_t};m{int}",
            Class::Task { is_flush: false },
        );
        check("PARSEC RUNTIME::RELEASE_DEPS", "tcid{uint32_t}", Class::ReleaseDeps);
        check("SCHEDULE_TASKS", "", Class::Runtime);
        check("PARSEC RUNTIME::SOMETHING_NEW", "", Class::Runtime);
        check("Sched POLL", "", Class::Runtime);
        check("MPI_DATA_PLD_SND", "", Class::Send);
        check("PINS_PAPI_S0_C0_F1t_0", "", Class::Papi);
        check("TILE_RANK", "tile_rank{int32_t}", Class::User);
    }

    #[test]
    fn infos_are_structs_of_c() {
        let of = Type::of(&entry(
            "x",
            "a{int8_t};b c{uint16_t};;##pad{int32_t};d{double};s{char[4]};e{float};f{unknown};g{int}",
            40,
        ));
        let mut info = vec![0xff, 9, 0x34, 0x12, 7, 7, 7, 7];
        info.extend(2.5f64.to_le_bytes());
        info.extend(b"a\"\0z");
        info.extend(0.1f32.to_le_bytes());
        info.resize(40, 0);
        let mut json = Vec::new();
        of.members(&info, false, false, &mut json);
        assert_eq!(String::from_utf8_lossy(&json), r#""a":-1,"b_c":4660,"d":2.5,"s":"a\"","e":0.1"#);
    }

    #[test]
    fn the_declared_length_wins() {
        assert_eq!(Type::of(&entry("x", "a{int32_t};b{int64_t}", 12)).fields.len(), 1);
        let raw = Type::of(&entry("x", "", 2));
        let mut json = Vec::new();
        raw.members(&[0x0a, 0xff], false, true, &mut json);
        assert_eq!(String::from_utf8_lossy(&json), r#","raw":"0aff""#);
    }

    #[test]
    fn bytes_are_swapped_for_the_other_order() {
        let of = Type::of(&entry("x", "a{int16_t};b{int32_t}", 8));
        let info = [0xff, 0xfe, 0, 0, 0, 0, 1, 2];
        assert_eq!((of.fields[0].integer(&info, true), of.fields[1].integer(&info, true)), (-2, 258));
    }
}
