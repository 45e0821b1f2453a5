// The words of the command line before they are parsed.
#pragma once

#include <string>
#include <vector>

namespace easydel::cli {

// The arguments of each rank: all except --nproc.
std::vector<std::string> without_nproc(int argc, char** argv);
// What people type instead of a command: `easydel run.yaml` runs the file, and `easydel help train` is
// `easydel train --help`.
std::vector<std::string> with_command(int argc, char** argv);

}  // namespace easydel::cli
