//! Store: pandas frames and series in an HDF5 file, as `HDFStore` of pandas lays them out.
//!
//! ```text
//! frame   axis0 names of columns | axis1 index of rows | blockK_items names, blockK_values rows x columns of one type
//! frame   table: one record a row, of `index` and `values_block_K`; the names of a block's columns in an attribute    (format='table')
//! series  index | values
//! ```
//! Columns of Python objects are one pickle a block ([`pickle`]). An empty axis is an array of one number with an attribute
//! `shape`.
//!
//! The crate hdf5-reader reads HDF5; what it refuses is an error that names the path within the file. Memory for each array
//! is reserved in the pool before it is read, so that a damaged shape costs nothing.

use datafusion::execution::memory_pool::MemoryReservation;
use hdf5_reader::group::Group;
use hdf5_reader::{Attribute, Dataset, Datatype, Hdf5File, OpenOptions, StringSize};

use super::pickle::{self, Object, Objects};
use crate::error::ImportError;
use crate::trace::Source;

/// What an object of a pickle takes, at most, for each of its bytes.
const OBJECT_BYTES: usize = 32;
/// More than deflate can make of a byte.
const INFLATION_MAX: usize = 1100;
/// Larger parts than any that pandas writes.
const CHUNK_BYTES_MAX: usize = 64 << 20;
const HEADER_BYTES_MAX: usize = 4 << 20;

/// An HDF5 file of pandas.
pub(super) struct Store<'a> {
    source: &'a Source,
    root: Group,
    file_bytes: usize,
    memory: &'a MemoryReservation,
    groups: Vec<String>,
}

/// A table.
#[derive(Debug, Default)]
pub(super) struct Frame {
    pub(super) rows: usize,
    pub(super) index: Vec<i64>,
    pub(super) columns: Vec<Column>,
}

/// Values of one type.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) values: Values,
}

/// The values of a column.
#[derive(Debug)]
pub(super) enum Values {
    Integers(Vec<i64>),
    Unsigned(Vec<u64>),
    Doubles(Vec<f64>),
    Objects(Vec<Object>),
    /// Values of a type that no trace needs.
    Unread,
}

impl Frame {
    pub(super) fn column(&self, name: &str) -> Option<&Values> {
        self.columns.iter().find(|column| column.name == name).map(|column| &column.values)
    }

    /// The whole numbers of a column.
    pub(super) fn integers(&self, name: &str) -> Option<&[i64]> {
        match self.column(name)? {
            Values::Integers(values) => Some(values),
            _ => None,
        }
    }
}

impl Values {
    /// The value of a row; what is missing is not a number in pandas.
    pub(super) fn object(&self, row: usize) -> Object {
        match self {
            Values::Integers(values) => values.get(row).map_or(Object::None, |value| Object::Integer(*value)),
            Values::Unsigned(values) => values.get(row).map_or(Object::None, |value| {
                i64::try_from(*value).map_or_else(|_| Object::Text(value.to_string().into()), Object::Integer)
            }),
            Values::Doubles(values) => values.get(row).map_or(Object::None, |value| Object::Double(*value)),
            Values::Objects(values) => values.get(row).cloned().unwrap_or(Object::None),
            Values::Unread => Object::None,
        }
    }

    fn len(&self) -> Option<usize> {
        match self {
            Values::Integers(values) => Some(values.len()),
            Values::Unsigned(values) => Some(values.len()),
            Values::Doubles(values) => Some(values.len()),
            Values::Objects(values) => Some(values.len()),
            Values::Unread => None,
        }
    }
}

type Hdf5Result<T> = Result<T, hdf5_reader::error::Error>;

impl<'a> Store<'a> {
    /// Opens a file.
    ///
    /// # Errors
    /// What keeps its groups from being listed.
    pub(super) fn open(
        source: &'a Source,
        bytes: Vec<u8>,
        memory: &'a MemoryReservation,
    ) -> Result<Store<'a>, ImportError> {
        let length = bytes.len();
        let options = OpenOptions::default()
            .with_chunk_cache_bytes(0)
            .with_max_chunk_bytes(CHUNK_BYTES_MAX)
            .with_max_object_header_bytes(HEADER_BYTES_MAX);
        let file = at(source, "superblock", Hdf5File::from_vec_with_options(bytes, options))?;
        let end = file.superblock().eof_address;
        if (length as u64) < end {
            let what = format!("it ends after {length} of its {end} bytes");
            return Err(super::super::damaged(source, format!("byte {length}"), what));
        }
        let root = at(source, "root group", file.root_group())?;
        let groups = at(source, "root group", root.member_names())?.0;
        Ok(Store { source, root, file_bytes: length, memory, groups })
    }

    /// The names of its frames and series.
    pub(super) fn groups(&self) -> &[String] {
        &self.groups
    }

    /// A frame, where there is one of that name.
    ///
    /// # Errors
    /// A part that cannot be read, with its path.
    pub(super) fn frame(&self, name: &str) -> Result<Option<Frame>, ImportError> {
        let Some(group) = self.group(name)? else { return Ok(None) };
        let sets = self.at(name, "", group.member_names())?.1;
        let place = |part: &str| format!("{name}/{part}");
        let open = |part: &str| self.at(name, part, group.dataset(part));
        if sets.iter().any(|set| set == "table") {
            return self.table(&open("table")?, &place("table")).map(Some);
        }
        let names = self.labels(&open("axis0")?, &place("axis0"))?;
        let index = self.values(&open("axis1")?, &place("axis1"))?;
        let index = match index {
            Values::Integers(index) => index,
            _ => Vec::new(),
        };
        let mut frame = Frame { rows: index.len(), index, columns: Vec::new() };
        for block in 0..sets.len() {
            let (items, values) = (format!("block{block}_items"), format!("block{block}_values"));
            if !sets.contains(&items) || !sets.contains(&values) {
                break;
            }
            let items = self.labels(&open(&items)?, &place(&items))?;
            self.block(&open(&values)?, items, &mut frame, &place(&values))?;
        }
        // The order of the columns is that of the axis, whatever their types.
        let order = |column: &Column| names.iter().position(|name| *name == column.name);
        frame.columns.sort_by_key(|column| order(column).unwrap_or(usize::MAX));
        Ok(Some(frame))
    }

    /// Index and values of a series, where there is one of that name.
    ///
    /// # Errors
    /// As [`Store::frame`].
    pub(super) fn series(&self, name: &str) -> Result<Option<(Values, Values)>, ImportError> {
        let Some(group) = self.group(name)? else { return Ok(None) };
        let part = |part: &str| {
            let set = self.at(name, part, group.dataset(part))?;
            self.values(&set, &format!("{name}/{part}"))
        };
        let (index, values) = (part("index")?, part("values")?);
        if index.len() != values.len() {
            return Err(self.damaged(name, format!("{:?} labels for {:?} values", index.len(), values.len())));
        }
        Ok(Some((index, values)))
    }

    fn group(&self, name: &str) -> Result<Option<Group>, ImportError> {
        if !self.groups.iter().any(|group| group == name) {
            return Ok(None);
        }
        self.at(name, "", self.root.group(name)).map(Some)
    }

    /// Whether a frame's values are Python objects, as those of version 1 are.
    ///
    /// # Errors
    /// As [`Store::frame`].
    pub(super) fn is_pickled(&self, name: &str) -> Result<bool, ImportError> {
        let Some(group) = self.group(name)? else { return Ok(false) };
        let sets = self.at(name, "", group.member_names())?.1;
        if !sets.iter().any(|set| set == "block0_values") {
            return Ok(false);
        }
        let values = self.at(name, "block0_values", group.dataset("block0_values"))?;
        Ok(matches!(values.dtype(), Datatype::VarLen { .. }))
    }

    /// Names along an axis.
    fn labels(&self, set: &Dataset, place: &str) -> Result<Vec<String>, ImportError> {
        match self.values(set, place)? {
            Values::Objects(labels) => Ok(labels.into_iter().map(|label| shown(&label)).collect()),
            Values::Integers(labels) => Ok(labels.into_iter().map(|label| label.to_string()).collect()),
            _ => Ok(Vec::new()),
        }
    }

    /// The values of an array of one dimension.
    fn values(&self, set: &Dataset, place: &str) -> Result<Values, ImportError> {
        if set.attributes().iter().any(|attribute| attribute.name == "shape") {
            return Ok(Values::Integers(Vec::new()));
        }
        if let Datatype::VarLen { .. } = set.dtype() {
            return Ok(Values::Objects(self.objects(set, place)?.items));
        }
        let width = self.at(place, "", set.raw_element_size())?;
        let bytes = self.bytes(set, place)?;
        Ok(values(set.dtype(), &bytes, 0, width))
    }

    /// The columns of a block.
    fn block(&self, set: &Dataset, items: Vec<String>, frame: &mut Frame, place: &str) -> Result<(), ImportError> {
        let is_by_row = |shape: &[usize]| *shape == [frame.rows, items.len()];
        if let Datatype::VarLen { .. } = set.dtype() {
            let Objects { shape, items: objects } = self.objects(set, place)?;
            if !is_by_row(&shape) {
                return Err(self.misshapen(&shape, frame, &items, place));
            }
            let mut columns: Vec<Vec<Object>> = items.iter().map(|_| Vec::with_capacity(frame.rows)).collect();
            for (at, object) in objects.into_iter().enumerate() {
                columns[at % items.len()].push(object);
            }
            let columns = items.into_iter().zip(columns);
            frame.columns.extend(columns.map(|(name, values)| Column { name, values: Values::Objects(values) }));
            return Ok(());
        }
        let shape: Vec<usize> =
            set.shape().iter().map(|length| usize::try_from(*length).unwrap_or(usize::MAX)).collect();
        if !is_by_row(&shape) {
            return Err(self.misshapen(&shape, frame, &items, place));
        }
        let width = self.at(place, "", set.raw_element_size())?;
        let bytes = self.bytes(set, place)?;
        let stride = width * items.len();
        for (number, name) in items.into_iter().enumerate() {
            self.reserve(bytes.len() / stride.max(1) * width.max(8), place)?;
            frame.columns.push(Column { name, values: values(set.dtype(), &bytes, number * width, stride) });
        }
        Ok(())
    }

    fn misshapen(&self, shape: &[usize], frame: &Frame, items: &[String], place: &str) -> ImportError {
        self.damaged(place, format!("a block of shape {shape:?} for {} rows and {} columns", frame.rows, items.len()))
    }

    /// A frame that is one table of records.
    fn table(&self, set: &Dataset, place: &str) -> Result<Frame, ImportError> {
        let Datatype::Compound { size, fields } = set.dtype() else {
            return Err(self.damaged(place, "no table of records".to_owned()));
        };
        let attributes = set.attributes();
        let bytes = self.bytes(set, place)?;
        let stride = *size as usize;
        let mut frame = Frame { rows: bytes.len().checked_div(stride).unwrap_or(0), ..Frame::default() };
        for field in fields {
            let from = field.byte_offset as usize;
            let (base, count) = match &field.datatype {
                Datatype::Array { base, dims } => (&**base, dims.iter().product::<u64>()),
                plain => (plain, 1),
            };
            if field.name == "index" {
                if let Values::Integers(index) = values(base, &bytes, from, stride) {
                    self.reserve(index.len() * 8, place)?;
                    frame.index = index;
                }
                continue;
            }
            let kind = format!("{}_kind", field.name);
            let names = attributes.iter().find(|attribute| attribute.name == kind);
            let names = names.and_then(|attribute: &Attribute| pickle::objects(&attribute.raw_data).ok());
            // A column that queries of pandas may use stands by itself.
            let names: Vec<String> =
                names.map_or_else(|| vec![field.name.clone()], |names| names.items.iter().map(shown).collect());
            if names.len() as u64 != count {
                return Err(
                    self.damaged(place, format!("{} names for {count} columns in `{}`", names.len(), field.name))
                );
            }
            let width = width(base);
            for (number, name) in names.into_iter().enumerate() {
                self.reserve(frame.rows * width.max(8), place)?;
                let values = values(base, &bytes, from + number * width, stride);
                if values.len().is_some_and(|length| length != frame.rows) {
                    return Err(self.damaged(place, format!("`{name}` lies outside of its records of {stride} bytes")));
                }
                frame.columns.push(Column { name, values });
            }
        }
        if frame.index.len() != frame.rows {
            return Err(self.damaged(place, "its records have no index".to_owned()));
        }
        Ok(frame)
    }

    /// The bytes of an array in the byte order of this machine.
    fn bytes(&self, set: &Dataset, place: &str) -> Result<Vec<u8>, ImportError> {
        let length = self.at(place, "", set.raw_byte_len())?;
        if length / INFLATION_MAX > self.file_bytes {
            return Err(self.damaged(place, format!("{length} bytes in a file of {}", self.file_bytes)));
        }
        self.reserve(length, place)?;
        self.at(place, "", set.read_native_bytes())
    }

    /// The array of objects that is pickled in the one element of an array.
    fn objects(&self, set: &Dataset, place: &str) -> Result<Objects, ImportError> {
        let length = self.at(place, "", set.raw_byte_len())?;
        let width = set.vlen_reference_size();
        if length != width {
            return Err(self.damaged(place, format!("{} pickles where one is expected", length / width.max(1))));
        }
        let reference = self.at(place, "", set.read_raw_bytes())?;
        let pickle = self.at(place, "", set.resolve_vlen_reference_bytes(&reference, 1))?;
        self.reserve(pickle.len() * OBJECT_BYTES, place)?;
        pickle::objects(&pickle).map_err(|what| self.damaged(place, format!("a pickle: {what}")))
    }

    fn reserve(&self, bytes: usize, place: &str) -> Result<(), ImportError> {
        self.memory.try_grow(bytes).map_err(|error| ImportError::Memory {
            path: self.source.path().to_owned(),
            what: format!("/{place}: {}", error.strip_backtrace()),
        })
    }

    fn damaged(&self, place: &str, what: String) -> ImportError {
        super::super::damaged(self.source, format!("/{place}"), what)
    }

    fn at<T>(&self, name: &str, part: &str, result: Hdf5Result<T>) -> Result<T, ImportError> {
        let place = if part.is_empty() { format!("/{name}") } else { format!("/{name}/{part}") };
        at(self.source, &place, result)
    }
}

/// An error of HDF5 in its own words, with the place.
fn at<T>(source: &Source, place: &str, result: Hdf5Result<T>) -> Result<T, ImportError> {
    result.map_err(|error| {
        let what = error.to_string();
        match what.rsplit_once("filter id ").map(|(_, number)| filter(number)) {
            Some(filter) => ImportError::Unusable {
                path: source.path().to_owned(),
                what: format!("{place} is compressed by {filter}, which tq cannot undo"),
                hint: Some(format!(
                    "convert the .prof files again, `{} --complib zlib --complevel 6 RANKFILES`, or open them as they are",
                    super::CONVERT
                )),
            },
            None => super::super::damaged(source, place.to_owned(), format!("HDF5: {what}")),
        }
    })
}

/// The name that a filter is registered under, for those that PyTables has.
fn filter(number: &str) -> String {
    let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
    let name = match digits.as_str() {
        "305" => "LZO",
        "307" => "bzip2",
        "32001" => "blosc",
        "32026" => "blosc2",
        _ => return format!("HDF5 filter {digits}"),
    };
    format!("{name} (HDF5 filter {digits})")
}

/// The bytes of a value.
fn width(datatype: &Datatype) -> usize {
    match datatype {
        Datatype::FixedPoint { size, .. } | Datatype::FloatingPoint { size, .. } | Datatype::Bitfield { size, .. } => {
            usize::from(*size)
        }
        Datatype::String { size: StringSize::Fixed(size), .. } => *size as usize,
        Datatype::Enum { base, .. } => width(base),
        _ => 0,
    }
}

/// Every value that begins at `from` and each `stride` bytes behind it.
fn values(datatype: &Datatype, bytes: &[u8], from: usize, stride: usize) -> Values {
    let width = width(datatype);
    if width == 0 || stride == 0 {
        return Values::Unread;
    }
    let cells = bytes.chunks_exact(stride).filter_map(|row| row.get(from..from + width));
    match datatype {
        Datatype::FixedPoint { signed: false, .. } if width == 8 => {
            Values::Unsigned(cells.map(|cell| signed(cell) as u64).collect())
        }
        Datatype::FixedPoint { signed: false, .. } | Datatype::Bitfield { .. } if width < 8 => {
            Values::Integers(cells.map(|cell| signed(cell) & ((1 << (8 * width)) - 1)).collect())
        }
        Datatype::FixedPoint { .. } | Datatype::Enum { .. } if width <= 8 => {
            Values::Integers(cells.map(signed).collect())
        }
        Datatype::FloatingPoint { .. } if width == 8 => {
            Values::Doubles(cells.map(|cell| f64::from_bits(signed(cell) as u64)).collect())
        }
        Datatype::FloatingPoint { .. } if width == 4 => {
            Values::Doubles(cells.map(|cell| f64::from(f32::from_bits(signed(cell) as u32))).collect())
        }
        Datatype::String { .. } => Values::Objects(cells.map(text).collect()),
        _ => Values::Unread,
    }
}

fn text(cell: &[u8]) -> Object {
    let end = memchr::memchr(0, cell).unwrap_or(cell.len());
    Object::Text(String::from_utf8_lossy(&cell[..end]).into())
}

/// A whole number of at most 8 bytes in the byte order of this machine, which HDF5 was asked for.
fn signed(cell: &[u8]) -> i64 {
    let mut number = [0u8; 8];
    let shift = 64 - 8 * cell.len();
    if cfg!(target_endian = "big") {
        number[..cell.len()].copy_from_slice(cell);
        i64::from_be_bytes(number) >> shift
    } else {
        number[8 - cell.len()..].copy_from_slice(cell);
        i64::from_le_bytes(number) >> shift
    }
}

/// A value as text, as Python prints it.
pub(super) fn shown(object: &Object) -> String {
    match object {
        Object::Integer(number) => number.to_string(),
        Object::Double(number) => format!("{number:?}"),
        Object::Text(text) => text.to_string(),
        Object::None | Object::List(_) | Object::Other => String::new(),
    }
}
