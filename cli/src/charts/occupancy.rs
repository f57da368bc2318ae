//! `occupancy x=<time> y=<share> [bound=<share>] [panel=<text>]`: how busy something was over time, as filled steps.
//!
//! A [`super::line`] chart whose points are the beginnings of intervals and whose y axis covers at least 0 to 1, so that
//! half full looks half full. Where there are more intervals than pixels, a pixel shows the mean of its intervals.

use super::ChartError;
use super::data::Data;
use super::line::{self, Shape};
use super::spec::Chart;

pub(super) fn draw(chart: &Chart, title: &str, data: &Data<'_>) -> Result<String, ChartError> {
    line::draw_as(Shape::Steps, chart, title, data)
}
