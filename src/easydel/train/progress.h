// A run's progress for people: a bar on a terminal, plain lines elsewhere. Writes to the stream that it is given.
#pragma once

#include <cstdio>
#include <memory>

#include "easydel/train/report.h"
#include "easydel/train/trainer_config.h"

namespace easydel::train {

// tqdm and rich: a bar where `stream` is a terminal (with colour unless NO_COLOR is set), lines where it is none;
// json: each report as a line of JSON. While it lives, the log's lines go above the bar.
std::unique_ptr<Watcher> make_progress(ProgressBar kind, std::FILE* stream);

}  // namespace easydel::train
