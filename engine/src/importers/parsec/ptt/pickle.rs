//! Pickles: how pandas stores strings inside of HDF5, as numpy arrays of Python objects.
//!
//! ```text
//! numpy.core.multiarray._reconstruct(ndarray, (0,), b'b') . __setstate__((1, (2, 1), dtype('O'), False, ['Comm thread', nan]))
//! ```
//! Only data is read: numbers, texts, lists, tuples, and the state of such an array. No Python class is looked up and nothing is
//! called: whatever a pickle asks for beyond that becomes [`Object::Other`]. An opcode makes at most one object, references are
//! shared, and nesting is limited: a small pickle needs little memory.

use std::rc::Rc;

/// A list in a tuple in a tuple is what numpy writes.
const DEPTH_MAX: u32 = 16;

/// A Python object. A text is shared by all that refer to it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Object {
    None,
    Integer(i64),
    Double(f64),
    Text(Rc<str>),
    /// A list of plain objects.
    List(Vec<Object>),
    Other,
}

/// An array of objects.
#[derive(Debug, PartialEq)]
pub(super) struct Objects {
    pub(super) shape: Vec<usize>,
    /// By rows.
    pub(super) items: Vec<Object>,
}

/// Reads a pickled array of objects, or a pickled list or tuple, which has one dimension.
///
/// # Errors
/// What is wrong, with the byte.
pub(super) fn objects(pickle: &[u8]) -> Result<Objects, String> {
    let value = Machine::default().run(pickle)?;
    let (shape, list) = match &*value {
        Value::Sequence { items, .. } => (vec![items.len()], items),
        Value::Made { state: Some(state), .. } => array(state).ok_or("it holds no array of objects")?,
        _ => return Err("it holds neither an array nor a list".to_owned()),
    };
    let count = shape.iter().try_fold(1usize, |count, length| count.checked_mul(*length));
    if count != Some(list.len()) {
        return Err(format!("an array of shape {shape:?} has {} objects", list.len()));
    }
    // A list can be referred to often; what is written out once for each reference must stay as long as the pickle.
    let inner = |value: &Rc<Value>| if let Value::Sequence { items, .. } = &**value { items.len() } else { 0 };
    if list.iter().map(inner).sum::<usize>() > pickle.len() {
        return Err("its lists hold more than it is long".to_owned());
    }
    let items = list.iter().map(|value| value.object(true)).collect();
    Ok(Objects { shape, items })
}

/// Shape and objects of `(version, shape, dtype, is_fortran, list)`. The list goes by rows, whatever the array does in memory.
fn array(state: &Value) -> Option<(Vec<usize>, &Vec<Rc<Value>>)> {
    let Value::Sequence { items: state, .. } = state else { return None };
    let [_, shape, _, _, list] = state.as_slice() else { return None };
    let (Value::Sequence { items: shape, .. }, Value::Sequence { items: list, .. }) = (&**shape, &**list) else {
        return None;
    };
    let length = |value: &Rc<Value>| match **value {
        Value::Integer(length) => usize::try_from(length).ok(),
        _ => None,
    };
    Some((shape.iter().map(length).collect::<Option<_>>()?, list))
}

/// What stands on the stack.
#[derive(Debug)]
enum Value {
    None,
    Integer(i64),
    Double(f64),
    /// Text, or bytes up to the first NUL: fields of characters are bytes in Python.
    Text(Rc<str>),
    /// A list or a tuple.
    Sequence {
        items: Vec<Rc<Value>>,
        depth: u32,
    },
    /// What a call would have made, and what it would have been told.
    Made {
        state: Option<Rc<Value>>,
        depth: u32,
    },
    Mark,
}

impl Value {
    fn depth(&self) -> u32 {
        match self {
            Value::Sequence { depth, .. } | Value::Made { depth, .. } => *depth,
            _ => 0,
        }
    }

    fn object(&self, outer: bool) -> Object {
        match self {
            Value::None => Object::None,
            Value::Integer(number) => Object::Integer(*number),
            Value::Double(number) => Object::Double(*number),
            Value::Text(text) => Object::Text(Rc::clone(text)),
            Value::Sequence { items, .. } if outer => {
                Object::List(items.iter().map(|item| item.object(false)).collect())
            }
            Value::Sequence { .. } | Value::Made { .. } | Value::Mark => Object::Other,
        }
    }
}

#[derive(Default)]
struct Machine<'p> {
    stack: Vec<Rc<Value>>,
    memo: hashbrown::HashMap<u64, Rc<Value>>,
    rest: &'p [u8],
}

impl<'p> Machine<'p> {
    fn run(mut self, pickle: &'p [u8]) -> Result<Rc<Value>, String> {
        self.rest = pickle;
        loop {
            let at = pickle.len() - self.rest.len();
            let operation = self.bytes(1).ok_or("it ends without a stop")?[0];
            if operation == b'.' {
                return self.stack.pop().ok_or_else(|| "it stops with nothing".to_owned());
            }
            self.step(operation)
                .ok_or_else(|| format!("operation {operation:#04x} at byte {at} cannot be carried out"))?;
        }
    }

    fn bytes(&mut self, count: usize) -> Option<&'p [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(bytes)
    }

    fn number(&mut self, bytes: usize) -> Option<u64> {
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(self.bytes(bytes)?);
        Some(u64::from_le_bytes(number))
    }

    /// Bytes behind their own length.
    fn counted(&mut self, length_bytes: usize) -> Option<&'p [u8]> {
        let length = usize::try_from(self.number(length_bytes)?).ok()?;
        self.bytes(length)
    }

    fn line(&mut self) -> Option<&'p str> {
        let end = memchr::memchr(b'\n', self.rest)?;
        let line = self.bytes(end + 1)?;
        std::str::from_utf8(&line[..end]).ok()
    }

    fn push(&mut self, value: Value) -> Option<()> {
        (value.depth() <= DEPTH_MAX).then(|| self.stack.push(Rc::new(value)))
    }

    fn text(&mut self, bytes: &'p [u8]) -> Option<()> {
        let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
        self.push(Value::Text(String::from_utf8_lossy(&bytes[..end]).into()))
    }

    fn sequence(&mut self, items: Vec<Rc<Value>>) -> Option<()> {
        let depth = items.iter().map(|item| item.depth()).max().unwrap_or(0) + 1;
        self.push(Value::Sequence { items, depth })
    }

    /// Takes the last `count` values off the stack.
    fn last(&mut self, count: usize) -> Option<Vec<Rc<Value>>> {
        let from = self.stack.len().checked_sub(count)?;
        Some(self.stack.split_off(from))
    }

    /// All behind the last mark.
    fn marked(&mut self) -> Option<Vec<Rc<Value>>> {
        let mark = self.stack.iter().rposition(|value| matches!(**value, Value::Mark))?;
        let items = self.stack.split_off(mark + 1);
        self.stack.pop();
        Some(items)
    }

    /// Adds to the list on top of the stack.
    fn extend(&mut self, more: Vec<Rc<Value>>) -> Option<()> {
        let list = self.stack.pop()?;
        // Remembered lists are copies, so nobody else holds this one; else it is no list that numpy writes.
        let Ok(Value::Sequence { mut items, mut depth }) = Rc::try_unwrap(list) else { return None };
        depth = more.iter().map(|item| item.depth() + 1).fold(depth, u32::max);
        items.extend(more);
        self.push(Value::Sequence { items, depth })
    }

    fn remember(&mut self, place: u64) -> Option<()> {
        // A list that is remembered is only ever filled: a copy of its empty self is enough, and keeps it unshared.
        let value = match &**self.stack.last()? {
            Value::Sequence { items, depth } if items.is_empty() => {
                Rc::new(Value::Sequence { items: Vec::new(), depth: *depth })
            }
            _ => Rc::clone(self.stack.last()?),
        };
        self.memo.insert(place, value);
        Some(())
    }

    fn recall(&mut self, place: u64) -> Option<()> {
        let value = Rc::clone(self.memo.get(&place)?);
        self.stack.push(value);
        Some(())
    }

    fn made(&mut self, state: Option<Rc<Value>>) -> Option<()> {
        let depth = state.as_ref().map_or(0, |state| state.depth()) + 1;
        self.push(Value::Made { state, depth })
    }

    fn step(&mut self, operation: u8) -> Option<()> {
        match operation {
            // Protocol; frame.
            0x80 => self.bytes(1).map(drop),
            0x95 => self.bytes(8).map(drop),
            b'(' => self.push(Value::Mark),
            b'0' => self.stack.pop().map(drop),
            b'1' => self.marked().map(drop),
            b'2' => {
                let top = Rc::clone(self.stack.last()?);
                self.stack.push(top);
                Some(())
            }
            b'N' => self.push(Value::None),
            0x88 => self.push(Value::Integer(1)),
            0x89 => self.push(Value::Integer(0)),
            b'J' => {
                let number = self.number(4)? as u32 as i32;
                self.push(Value::Integer(i64::from(number)))
            }
            b'K' => {
                let number = self.number(1)?;
                self.push(Value::Integer(number as i64))
            }
            b'M' => {
                let number = self.number(2)?;
                self.push(Value::Integer(number as i64))
            }
            0x8a => {
                let bytes = self.counted(1)?;
                let value = long(bytes);
                self.push(value)
            }
            b'I' | b'L' => {
                let line = self.line()?;
                let value = line.trim_end_matches('L').parse().map_or(Value::Mark, Value::Integer);
                if let Value::Mark = value { self.made(None) } else { self.push(value) }
            }
            b'F' => {
                let number = self.line()?.parse().ok()?;
                self.push(Value::Double(number))
            }
            b'G' => {
                let bits = self.number(8)?.swap_bytes();
                self.push(Value::Double(f64::from_bits(bits)))
            }
            0x8c | b'U' | b'C' => {
                let bytes = self.counted(1)?;
                self.text(bytes)
            }
            b'X' | b'T' | b'B' => {
                let bytes = self.counted(4)?;
                self.text(bytes)
            }
            0x8d | 0x8e | 0x96 => {
                let bytes = self.counted(8)?;
                self.text(bytes)
            }
            b'V' | b'S' => {
                let line = self.line()?;
                self.push(Value::Text(line.trim_matches('\'').into()))
            }
            b']' | b')' => self.sequence(Vec::new()),
            b'l' | b't' => {
                let items = self.marked()?;
                self.sequence(items)
            }
            0x85..=0x87 => {
                let items = self.last(usize::from(operation - 0x84))?;
                self.sequence(items)
            }
            b'a' => {
                let items = self.last(1)?;
                self.extend(items)
            }
            b'e' => {
                let items = self.marked()?;
                self.extend(items)
            }
            b'}' => self.made(None),
            b'd' => {
                self.marked()?;
                self.made(None)
            }
            b's' => self.last(2).map(drop),
            b'u' => self.marked().map(drop),
            0x94 => self.remember(self.memo.len() as u64),
            b'q' => {
                let place = self.number(1)?;
                self.remember(place)
            }
            b'r' => {
                let place = self.number(4)?;
                self.remember(place)
            }
            b'p' => {
                let place = self.line()?.parse().ok()?;
                self.remember(place)
            }
            b'h' => {
                let place = self.number(1)?;
                self.recall(place)
            }
            b'j' => {
                let place = self.number(4)?;
                self.recall(place)
            }
            b'g' => {
                let place = self.line()?.parse().ok()?;
                self.recall(place)
            }
            // A name; names from the stack; a call; a new object: nothing is looked up or called.
            b'c' => {
                self.line()?;
                self.line()?;
                self.made(None)
            }
            0x93 | b'R' | 0x81 => {
                self.last(2)?;
                self.made(None)
            }
            // The state of what was made.
            b'b' => {
                let state = self.stack.pop()?;
                self.stack.pop()?;
                self.made(Some(state))
            }
            _ => None,
        }
    }
}

/// A little endian number of any length; none of ours is longer than 8 bytes but for the upper half of u64.
fn long(bytes: &[u8]) -> Value {
    if bytes.len() > 8 {
        return Value::Made { state: None, depth: 1 };
    }
    let mut number = if bytes.last().is_some_and(|byte| byte & 0x80 != 0) { [0xff; 8] } else { [0; 8] };
    number[..bytes.len()].copy_from_slice(bytes);
    Value::Integer(i64::from_le_bytes(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Object {
        Object::Text(text.into())
    }

    /// `pickle.dumps(numpy.array([['a', 1], ['bc', nan]], dtype=object), protocol=4)`, without its frame.
    fn array() -> Vec<u8> {
        let mut pickle = b"\x80\x04\x8c\x15numpy.core.multiarray\x94\x8c\x0c_reconstruct\x94\x93\x94\x8c\x05numpy\x94\x8c\x07ndarray\x94\x93\x94K\x00\x85\x94C\x01b\x94\x87\x94R\x94(K\x01K\x02K\x02\x86\x94h\x03\x8c\x05dtype\x94\x93\x94\x8c\x02O8\x94\x89\x88\x87\x94R\x94(K\x03\x8c\x01|\x94NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?t\x94b\x89]\x94(\x8c\x01a\x94K\x01C\x03bc\x00\x94G".to_vec();
        pickle.extend(2.5f64.to_be_bytes());
        pickle.extend(b"et\x94b.");
        pickle
    }

    #[test]
    fn arrays_of_objects_are_read() {
        let expected =
            Objects { shape: vec![2, 2], items: vec![text("a"), Object::Integer(1), text("bc"), Object::Double(2.5)] };
        assert_eq!(objects(&array()), Ok(expected));
    }

    #[test]
    fn arrays_that_lie_by_columns_are_written_by_rows() {
        let mut pickle = array();
        let order = pickle.windows(4).position(|bytes| bytes == b"b\x89]\x94").expect("is_fortran");
        pickle[order + 1] = 0x88;
        assert_eq!(objects(&pickle), objects(&array()));
    }

    #[test]
    fn lists_of_the_oldest_protocol_are_read() {
        // Names of columns in a table of PyTables.
        let list = b"(lp0\nVnode_id\np1\naVid\np2\naI-3\na.";
        assert_eq!(
            objects(list),
            Ok(Objects { shape: vec![3], items: vec![text("node_id"), text("id"), Object::Integer(-3)] })
        );
        assert_eq!(objects(b"(I0\ntp0\n."), Ok(Objects { shape: vec![1], items: vec![Object::Integer(0)] }));
    }

    #[test]
    fn nothing_is_called() {
        assert!(objects(b"cos\nsystem\n(S'ls'\ntR.").is_err());
        let list = objects(b"(lcos\nsystem\n(S'ls'\ntRa.");
        assert_eq!(list, Ok(Objects { shape: vec![1], items: vec![Object::Other] }));
    }

    #[test]
    fn damage_is_an_error() {
        let whole = array();
        for length in 0..whole.len() {
            assert!(objects(&whole[..length]).is_err(), "cut at {length}");
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                let _ = objects(&damaged);
            }
        }
        // Deep, and doubling with every line: neither is followed.
        let deep = [vec![b']'; 1], vec![0x85; 100_000], vec![b'.']].concat();
        assert!(objects(&deep).is_err());
        let mut bomb = b"]".to_vec();
        for _ in 0..100 {
            bomb.extend(b"22\x86");
        }
        bomb.push(b'.');
        assert!(objects(&bomb).is_err());
    }
}
