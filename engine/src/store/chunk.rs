//! Chunk: a column of words as a file has it, made of the keys of its dictionary.
//!
//! Parquet's own writer (59.3) takes the text of each row, hashes it to find its number among those of the group, and compares it with the
//! least and the greatest of its page: a third of an import's time, for numbers that the column has already. Here the texts are looked at
//! once for each word, and rows are keys. The format is the same, page for page (Parquet, `Encodings.md`: dictionary pages, RLE and
//! bit packing in turns; `PageIndex.md`).
//!
//! ```text
//! keys of the trace's dictionary → numbers of the words in this group, in the order of first use → pages
//! ```

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{Array, AsArray, DictionaryArray};
use datafusion::arrow::datatypes::Int32Type;
use datafusion::parquet::basic::{BoundaryOrder, Compression, Encoding, EncodingMask, PageType, Type, ZstdLevel};
use datafusion::parquet::column::page::{CompressedPage, Page, PageWriter};
use datafusion::parquet::column::writer::ColumnCloseResult;
use datafusion::parquet::data_type::ByteArray;
use datafusion::parquet::errors::{ParquetError, Result};
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder, PageEncodingStats,
};
use datafusion::parquet::file::statistics::{Statistics, ValueStatistics};
use datafusion::parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use datafusion::parquet::schema::types::ColumnDescPtr;

/// Words of more bytes are written by Parquet's writer, which gives dictionaries up there, too.
const DICTIONARY_BYTES: usize = 1 << 20;
/// So many bytes of the least and the greatest word are kept for each page.
const BOUND_BYTES: usize = 64;
/// So many equal numbers are worth a run of their own.
const RUN: usize = 8;
const ABSENT: u32 = u32::MAX;

/// A column of one group of rows in pages of `page_rows`, and what its footer says; `None` where its words are too many.
///
/// # Errors
/// The words cannot be compressed.
pub(super) fn of_words(
    words: &DictionaryArray<Int32Type>,
    page_rows: usize,
    level: ZstdLevel,
    column: &ColumnDescPtr,
) -> Result<Option<(Bytes, ColumnCloseResult)>> {
    let Some(dictionary) = Dictionary::of(words) else { return Ok(None) };
    let mut chunk = Chunk {
        sink: TrackedWrite::new(Vec::new()),
        compressor: zstd::bulk::Compressor::new(level.compression_level())
            .map_err(|error| ParquetError::External(Box::new(error)))?,
        uncompressed: 0,
        compressed: 0,
    };
    let page = Page::DictionaryPage {
        buf: Bytes::new(),
        num_values: dictionary.words.len() as u32,
        encoding: Encoding::PLAIN,
        is_sorted: false,
    };
    chunk.write(page, &dictionary.plain())?;
    let first_page = chunk.compressed;
    let nullable = column.max_def_level() > 0;
    let (mut index, mut offsets) = (ColumnIndexBuilder::new(Type::BYTE_ARRAY), OffsetIndexBuilder::new());
    let (mut bounds, mut nulls, mut pages): (Vec<(u32, u32)>, usize, i32) = (Vec::new(), 0, 0);
    let mut numbers = Vec::with_capacity(page_rows);
    for from in (0..words.len()).step_by(page_rows) {
        let keys = words.keys().slice(from, page_rows.min(words.len() - from));
        numbers.clear();
        match keys.null_count() {
            0 => numbers.extend(keys.values().iter().map(|key| dictionary.numbers[*key as usize])),
            _ => numbers.extend(keys.iter().flatten().map(|key| dictionary.numbers[key as usize])),
        }
        let mut buffer = Vec::new();
        if nullable {
            let mut levels = Vec::new();
            match keys.nulls() {
                Some(present) => encode(&present.iter().map(u32::from).collect::<Vec<_>>(), 1, &mut levels),
                None => run(1, keys.len(), 1, &mut levels),
            }
            buffer.extend((levels.len() as u32).to_le_bytes());
            buffer.append(&mut levels);
        }
        let width = dictionary.width();
        buffer.push(width as u8);
        encode(&numbers, width, &mut buffer);
        let page = Page::DataPage {
            buf: Bytes::new(),
            num_values: keys.len() as u32,
            encoding: Encoding::RLE_DICTIONARY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let (offset, bytes) = chunk.write(page, &buffer)?;
        let of_page = dictionary.bounds(&numbers);
        let (least, greatest) = of_page.map_or_else(Default::default, |bounds| dictionary.shortened(bounds));
        index.append(of_page.is_none(), least.0, greatest.0, keys.null_count() as i64);
        offsets.append_row_count(keys.len() as i64);
        offsets.append_offset_and_size(offset, bytes);
        bounds.extend(of_page);
        nulls += keys.null_count();
        pages += 1;
    }
    let ascending = bounds.is_sorted_by(|one, next| one.0 <= next.0 && one.1 <= next.1);
    index.set_boundary_order(if ascending { BoundaryOrder::ASCENDING } else { BoundaryOrder::UNORDERED });
    let all = bounds.into_iter().reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
    let (least, greatest) = all.map(|all| dictionary.shortened(all)).unzip();
    let is_whole = |bound: &Option<(Vec<u8>, bool)>| bound.as_ref().is_none_or(|(_, is_whole)| *is_whole);
    let (least_is_whole, greatest_is_whole) = (is_whole(&least), is_whole(&greatest));
    let value = |bound: Option<(Vec<u8>, bool)>| bound.map(|(text, _)| ByteArray::from(text));
    let statistics = ValueStatistics::new(value(least), value(greatest), None, Some(nulls as u64), false)
        .with_min_is_exact(least_is_whole)
        .with_max_is_exact(greatest_is_whole);
    let of_pages =
        |page_type: PageType, encoding: Encoding, count: i32| PageEncodingStats { page_type, encoding, count };
    let metadata = ColumnChunkMetaData::builder(Arc::clone(column))
        .set_compression(Compression::ZSTD(level))
        .set_encodings_mask(EncodingMask::new_from_encodings(
            [Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY].iter(),
        ))
        .set_page_encoding_stats(vec![
            of_pages(PageType::DICTIONARY_PAGE, Encoding::PLAIN, 1),
            of_pages(PageType::DATA_PAGE, Encoding::RLE_DICTIONARY, pages),
        ])
        .set_total_compressed_size(chunk.compressed)
        .set_total_uncompressed_size(chunk.uncompressed)
        .set_num_values(words.len() as i64)
        .set_dictionary_page_offset(Some(0))
        .set_data_page_offset(first_page)
        .set_statistics(Statistics::ByteArray(statistics))
        .build()?;
    let close = ColumnCloseResult {
        bytes_written: chunk.compressed as u64,
        rows_written: words.len() as u64,
        metadata,
        bloom_filter: None,
        column_index: Some(index.build()?),
        offset_index: Some(offsets.build()),
    };
    Ok(Some((Bytes::from(chunk.sink.into_inner()?), close)))
}

/// The words of a group.
struct Dictionary<'a> {
    /// In the order of their numbers, each once.
    words: Vec<&'a str>,
    /// By key: the number of its word.
    numbers: Vec<u32>,
    /// By number: the place of the word among all in the order of their bytes, and back.
    ranks: Vec<u32>,
    sorted: Vec<u32>,
}

impl<'a> Dictionary<'a> {
    fn of(words: &'a DictionaryArray<Int32Type>) -> Option<Dictionary<'a>> {
        let texts = words.values().as_string_opt::<i32>()?;
        // A group of few rows that shares the words of many is not to look at all of them.
        if texts.null_count() > 0 || texts.len() > 4 * words.len() + 1024 {
            return None;
        }
        let mut numbers = vec![ABSENT; texts.len()];
        let (mut used, mut bytes) = (Vec::new(), 0);
        let mut see = |key: i32| {
            let number = &mut numbers[key as usize];
            if *number == ABSENT {
                *number = used.len() as u32;
                used.push(key as usize);
                bytes += size_of::<u32>() + texts.value_length(key as usize) as usize;
            }
        };
        match words.keys().null_count() {
            0 => words.keys().values().iter().copied().for_each(&mut see),
            _ => words.keys().iter().flatten().for_each(&mut see),
        }
        if bytes > DICTIONARY_BYTES {
            return None;
        }
        let mut words: Vec<&str> = used.iter().map(|key| texts.value(*key)).collect();
        let mut sorted: Vec<u32> = (0..words.len() as u32).collect();
        sorted.sort_unstable_by_key(|number| words[*number as usize]);
        // Dictionaries that were put one behind the other may have a word twice.
        if sorted.windows(2).any(|pair| words[pair[0] as usize] == words[pair[1] as usize]) {
            let mut number_of: hashbrown::HashMap<&str, u32> = hashbrown::HashMap::new();
            words.clear();
            for key in &used {
                let word = texts.value(*key);
                numbers[*key] = *number_of.entry(word).or_insert_with(|| {
                    words.push(word);
                    words.len() as u32 - 1
                });
            }
            sorted = (0..words.len() as u32).collect();
            sorted.sort_unstable_by_key(|number| words[*number as usize]);
        }
        let mut ranks = vec![0; words.len()];
        (0..).zip(&sorted).for_each(|(rank, number)| ranks[*number as usize] = rank);
        Some(Dictionary { words, numbers, ranks, sorted })
    }

    /// Bits of a number.
    fn width(&self) -> u32 {
        (self.words.len().max(2) as u32 - 1).ilog2() + 1
    }

    /// A length and a text for each word.
    fn plain(&self) -> Vec<u8> {
        let mut plain = Vec::new();
        for word in &self.words {
            plain.extend((word.len() as u32).to_le_bytes());
            plain.extend(word.as_bytes());
        }
        plain
    }

    /// The least and the greatest rank of these words.
    fn bounds(&self, numbers: &[u32]) -> Option<(u32, u32)> {
        let (first, rest) = numbers.split_first()?;
        let rank = |number: &u32| self.ranks[*number as usize];
        let wider = |(least, greatest): (u32, u32), rank: u32| (least.min(rank), greatest.max(rank));
        Some(rest.iter().map(rank).fold((rank(first), rank(first)), wider))
    }

    /// A text that is not greater than the least word, one that is not less than the greatest, and whether they are these words.
    fn shortened(&self, (least, greatest): (u32, u32)) -> ((Vec<u8>, bool), (Vec<u8>, bool)) {
        let word = |rank: u32| self.words[self.sorted[rank as usize] as usize];
        let (least, greatest) = (word(least), word(greatest));
        let prefix = prefix(least);
        let above = match greatest.len() > BOUND_BYTES {
            true => following(greatest),
            false => None,
        };
        let greatest = above.map_or_else(|| (greatest.as_bytes().to_vec(), true), |text| (text.into_bytes(), false));
        ((prefix.as_bytes().to_vec(), prefix.len() == least.len()), greatest)
    }
}

/// The first characters of a text.
fn prefix(text: &str) -> &str {
    let mut end = text.len().min(BOUND_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A short text that is greater than all that begin as this one does.
fn following(text: &str) -> Option<String> {
    let mut following = prefix(text).to_owned();
    while let Some(last) = following.pop() {
        // Behind the last before the surrogates come those after them.
        if let Some(next) = (last as u32 + 1..=char::MAX as u32).find_map(char::from_u32) {
            following.push(next);
            return Some(following);
        }
    }
    None
}

/// Pages that are written.
struct Chunk<'c> {
    sink: TrackedWrite<Vec<u8>>,
    compressor: zstd::bulk::Compressor<'c>,
    /// Bytes with their headers.
    uncompressed: i64,
    compressed: i64,
}

impl Chunk<'_> {
    /// Compresses and adds a page, and says where it begins and how many bytes it has.
    fn write(&mut self, page: Page, bytes: &[u8]) -> Result<(i64, i32)> {
        let compressed = self.compressor.compress(bytes).map_err(|error| ParquetError::External(Box::new(error)))?;
        let filled = match page {
            Page::DictionaryPage { num_values, encoding, is_sorted, .. } => {
                Page::DictionaryPage { buf: compressed.into(), num_values, encoding, is_sorted }
            }
            Page::DataPage { num_values, encoding, def_level_encoding, rep_level_encoding, statistics, .. } => {
                let buf = compressed.into();
                Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, statistics }
            }
            page @ Page::DataPageV2 { .. } => page,
        };
        let written = SerializedPageWriter::new(&mut self.sink).write_page(CompressedPage::new(filled, bytes.len()))?;
        self.uncompressed += written.uncompressed_size as i64;
        self.compressed += written.compressed_size as i64;
        Ok((written.offset as i64, written.compressed_size as i32))
    }
}

/// Appends numbers of so many bits: runs of equal ones as a count and one of them, others packed, eight at a time.
fn encode(numbers: &[u32], width: u32, to: &mut Vec<u8>) {
    // What is packed begins here.
    let (mut packed, mut at) = (0, 0);
    while at < numbers.len() {
        let equal = numbers[at..].iter().take_while(|number| **number == numbers[at]).count();
        // Packed numbers are filled up to eight from the run.
        let missing = (at - packed).next_multiple_of(8) - (at - packed);
        if equal >= RUN + missing {
            pack(&numbers[packed..at + missing], width, to);
            run(numbers[at], equal - missing, width, to);
            packed = at + equal;
        }
        at += equal;
    }
    pack(&numbers[packed..], width, to);
}

/// A run of one number.
fn run(number: u32, count: usize, width: u32, to: &mut Vec<u8>) {
    variable((count as u64) << 1, to);
    to.extend(&number.to_le_bytes()[..width.div_ceil(8) as usize]);
}

/// Numbers bit by bit, filled up to a multiple of eight.
fn pack(numbers: &[u32], width: u32, to: &mut Vec<u8>) {
    if numbers.is_empty() {
        return;
    }
    variable((numbers.len().div_ceil(8) as u64) << 1 | 1, to);
    to.reserve(numbers.len().div_ceil(8) * width as usize);
    for eight in numbers.chunks(8) {
        let (mut bits, mut filled): (u64, u32) = (0, 0);
        for place in 0..8 {
            bits |= u64::from(eight.get(place).copied().unwrap_or(0)) << filled;
            filled += width;
            while filled >= 8 {
                to.push(bits as u8);
                bits >>= 8;
                filled -= 8;
            }
        }
    }
}

/// A number in groups of seven bits.
fn variable(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
    use datafusion::parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
    use datafusion::parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
    use datafusion::parquet::file::page_index::column_index::ColumnIndexMetaData;
    use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
    use proptest::prelude::*;

    use super::*;

    const PAGE: usize = 16;

    fn schema(nullable: bool) -> Arc<Schema> {
        let words = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        Arc::new(Schema::new(vec![Field::new("word", words, nullable)]))
    }

    /// A file with the column alone, and the texts and the footer that are read of it; `ours` or as Parquet's writer makes it.
    fn round_trip(
        words: &DictionaryArray<Int32Type>,
        nullable: bool,
        ours: bool,
    ) -> (Vec<Option<String>>, Arc<ParquetMetaData>) {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_data_page_row_count_limit(PAGE)
            .set_write_batch_size(PAGE)
            .set_statistics_enabled(EnabledStatistics::Page)
            .build();
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let mut writer = ArrowWriter::try_new_with_options(Vec::new(), schema(nullable), options).unwrap();
        let file = match ours {
            true => {
                let (mut writer, _) = writer.into_serialized_writer().unwrap();
                let column = writer.schema_descr().column(0);
                let (bytes, close) = of_words(words, PAGE, ZstdLevel::default(), &column).unwrap().expect("few words");
                let mut group = writer.next_row_group().unwrap();
                group.append_column(&bytes, close).unwrap();
                group.close().unwrap();
                writer.into_inner().unwrap()
            }
            false => {
                let column: ArrayRef = Arc::new(words.clone());
                writer.write(&RecordBatch::try_new(schema(nullable), vec![column]).unwrap()).unwrap();
                writer.into_inner().unwrap()
            }
        };
        let text = Arc::new(Schema::new(vec![Field::new("word", DataType::Utf8, nullable)]));
        let options = ArrowReaderOptions::new().with_schema(text).with_page_index_policy(PageIndexPolicy::Required);
        let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(Bytes::from(file), options).unwrap();
        let footer = Arc::clone(builder.metadata());
        let mut texts = Vec::new();
        for batch in builder.build().unwrap() {
            texts.extend(batch.unwrap().column(0).as_string::<i32>().iter().map(|text| text.map(str::to_owned)));
        }
        (texts, footer)
    }

    fn index(footer: &ParquetMetaData) -> (&ColumnIndexMetaData, Vec<i64>) {
        let pages = footer.offset_index().unwrap()[0][0].page_locations();
        (&footer.column_index().unwrap()[0][0], pages.iter().map(|page| page.first_row_index).collect())
    }

    fn word() -> impl Strategy<Value = String> {
        prop_oneof!["[a-c]{0,2}", "[é-ω\u{d7ff}\u{10ffff}]{0,3}", "x{60,70}", "[ab]{63}[\u{10ffff}ω]{1,3}"]
    }

    proptest! {
        #[test]
        fn words_are_read_as_they_were_written(
            values in prop::collection::vec(word(), 1..12),
            // Rows with runs of the same word, and words that are absent.
            rows in prop::collection::vec((prop::option::weighted(0.8, 0..12usize), 1..20usize), 1..30),
            nullable: bool,
        ) {
            let keys = rows.iter().flat_map(|(key, count)| std::iter::repeat_n(key.map(|key| (key % values.len()) as i32), *count));
            let keys: Int32Array = keys.map(|key| if nullable { key } else { Some(key.unwrap_or(0)) }).collect();
            let texts: Vec<Option<String>> = keys.iter().map(|key| key.map(|key| values[key as usize].clone())).collect();
            let words = DictionaryArray::new(keys, Arc::new(StringArray::from(values)));
            let ((read, footer), (_, theirs)) = (round_trip(&words, nullable, true), round_trip(&words, nullable, false));
            prop_assert_eq!(&read, &texts);
            let (ColumnIndexMetaData::BYTE_ARRAY(pages), firsts) = index(&footer) else { panic!("an index of texts") };
            let (ColumnIndexMetaData::BYTE_ARRAY(their_pages), their_firsts) = index(&theirs) else { panic!("texts") };
            prop_assert_eq!(firsts, their_firsts);
            for (page, rows) in texts.chunks(PAGE).enumerate() {
                let (least, greatest) = (rows.iter().flatten().min(), rows.iter().flatten().max());
                prop_assert_eq!(pages.is_null_page(page), least.is_none());
                prop_assert_eq!(pages.null_count(page), their_pages.null_count(page));
                let Some((least, greatest)) = least.zip(greatest) else { continue };
                let bounds = (pages.min_value(page).unwrap(), pages.max_value(page).unwrap());
                prop_assert!(bounds.0 <= least.as_bytes() && greatest.as_bytes() <= bounds.1);
                prop_assert_eq!(bounds.0, their_pages.min_value(page).unwrap());
                if greatest.len() <= BOUND_BYTES {
                    prop_assert_eq!(bounds.1, their_pages.max_value(page).unwrap());
                }
            }
            let [ours, theirs] = [&footer, &theirs].map(|footer| footer.row_group(0).column(0));
            prop_assert_eq!(ours.num_values(), theirs.num_values());
            let [ours, theirs] = [ours, theirs].map(|column| column.statistics().unwrap());
            prop_assert_eq!(ours.null_count_opt(), theirs.null_count_opt());
            prop_assert_eq!(ours.min_bytes_opt(), theirs.min_bytes_opt());
            let greatest = texts.iter().flatten().max();
            prop_assert!(greatest.is_none_or(|word| word.as_bytes() <= ours.max_bytes_opt().unwrap()));
            prop_assert!(greatest.is_none_or(|word| ours.max_is_exact() == (word.as_bytes() == ours.max_bytes_opt().unwrap())));
        }
    }

    #[test]
    fn many_words_are_left_to_the_writer() {
        let texts: Vec<String> = (0..40_000).map(|number| format!("{number:030}")).collect();
        let words: DictionaryArray<Int32Type> = texts.iter().map(String::as_str).collect();
        assert!(Dictionary::of(&words).is_none());
        assert!(Dictionary::of(&words.slice(0, 20_000)).is_some());
        // Few rows that share the words of many.
        assert!(Dictionary::of(&words.slice(0, 100)).is_none());
    }

    #[test]
    fn a_text_after_all_with_the_same_beginning() {
        let long = |last: char| format!("{}{last}", "a".repeat(BOUND_BYTES));
        assert_eq!(following(&long('z')).unwrap(), format!("{}b", "a".repeat(BOUND_BYTES - 1)));
        let greatest = "\u{10ffff}".repeat(BOUND_BYTES / 4 + 1);
        assert_eq!(following(&greatest), None);
        assert_eq!(
            following(&format!("{}\u{d7ff}tail", "a".repeat(61))).unwrap(),
            format!("{}\u{e000}", "a".repeat(61))
        );
    }
}
