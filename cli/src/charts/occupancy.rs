//! `occupancy x=<time> y=<share> [bound=<share>] [panel=<text>]`: how busy something was over time, as filled steps.
//!
//! A [`super::line`] chart whose points are the beginnings of stretches and whose y axis reaches from 0 to 1 at least, so
//! that half full looks half full. Where there are more stretches than pixels, a pixel shows the mean of its stretches.

use super::ChartError;
use super::data::Data;
use super::line::{self, Shape};
use super::spec::Chart;

pub(super) fn draw(chart: &Chart, title: &str, data: &Data<'_>) -> Result<String, ChartError> {
    line::draw_as(Shape::Steps, chart, title, data)
}
