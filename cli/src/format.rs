//! The output formats for rows: their names, their extensions, and which of them are text.

use std::path::Path;

use clap::ValueEnum;

use crate::text::runner::Spelling;

/// The formats of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Csv,
    Tsv,
    Json,
    Ndjson,
    Markdown,
    Parquet,
    Arrow,
    Svg,
    Chrome,
}

impl Format {
    /// What a file name promises.
    pub(crate) fn of_extension(path: &Path) -> Option<Format> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "txt" => Format::Table,
            "csv" => Format::Csv,
            "tsv" | "tab" => Format::Tsv,
            "json" => Format::Json,
            "ndjson" | "jsonl" => Format::Ndjson,
            "md" | "markdown" => Format::Markdown,
            "parquet" => Format::Parquet,
            "arrow" | "arrows" | "feather" | "ipc" => Format::Arrow,
            "svg" => Format::Svg,
            _ => return None,
        })
    }

    /// Bytes that a terminal cannot show.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Format::Parquet | Format::Arrow)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Json => "json",
            Format::Ndjson => "ndjson",
            Format::Markdown => "markdown",
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
            Format::Svg => "svg",
            Format::Chrome => "chrome",
        }
    }

    /// How its texts are kept from being commands.
    pub(crate) fn spelling(self) -> Spelling {
        match self {
            Format::Table => Spelling::Escape,
            Format::Markdown | Format::Svg => Spelling::Reference,
            Format::Json | Format::Ndjson | Format::Chrome => Spelling::Json,
            Format::Csv | Format::Tsv => Spelling::Stop,
            Format::Parquet | Format::Arrow => Spelling::Bytes,
        }
    }
}
