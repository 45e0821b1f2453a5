// The program: everything it does is in the libraries.
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "easydel/cli/command_line.h"
#include "easydel/cli/patient_threads.h"

int main(int argc, char** argv) {
  easydel::cli::wait_patiently(argv);
  const int status = easydel::cli::run(argc, argv);
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
  _exit(status);  // torch's destructors take 60 ms and give nothing back
}
