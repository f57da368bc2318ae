#!/usr/bin/env bash
# Question: does a query that loses a worker answer right, or say so, within a minute?
#
# `bash benches/lost_workers.sh [ROUNDS] [SEED]`: in each of ROUNDS (200) rounds two workers are asked, of which one, and each fourth time the other
# too, is killed, stopped, cut off, slowed, heard no more of, or has a full disk, at a random moment. The same seed gives the same fates.
# The rounds are those of the test `workers_that_are_lost_meanwhile_change_no_answer`, which ends at the first wrong answer.
set -euo pipefail
cd "$(dirname "$0")/.."
TQ_ROUNDS="${1:-200}" TQ_SEED="${2:-$(date +%s)}" cargo test --locked -p tq-cli --features cluster --test cluster lost_meanwhile -- --nocapture
