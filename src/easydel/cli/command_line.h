// The command line: which command, which flags, and what the exit status is.
#pragma once

namespace easydel::cli {

// 0: success. 2: an error that the user can fix, reported on standard error. 70: a bug. 130: ended by Ctrl-C.
int run(int argc, char** argv);

}  // namespace easydel::cli
