#include "easydel/cli/doctor.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <thread>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/free_memory.h"
#include "easydel/base/names.h"
#include "easydel/cli/patient_threads.h"
#include "easydel/data/columnar.h"
#include "easydel/elarge/core.h"
#include "easydel/kernels/accumulation_order.h"
#include "easydel/kernels/executor.h"
#include "easydel/kernels/isa.h"
#include "easydel/kernels/peak.h"
#include "easydel/media/image_decoder.h"

namespace easydel::cli {
namespace {

// The value of a line "name : value" in /proc.
std::string proc_value(const char* path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

int64_t whole_number(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

int64_t group_number(const char* name) {
  std::ifstream file(std::string("/sys/fs/cgroup/") + name);
  std::string text;
  return std::getline(file, text) ? whole_number(text) : 0;  // "max" means no limit
}

std::vector<int> allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const bool known = sched_getaffinity(0, sizeof set, &set) == 0;
  std::vector<int> all;
  for (int cpu = 0; cpu < (known ? CPU_SETSIZE : int(std::thread::hardware_concurrency())); ++cpu)
    if (!known || CPU_ISSET(cpu, &set)) all.push_back(cpu);
  return all;
}

// {0, 1, 2, 5} as "0-2,5".
std::string ranges_of(const std::vector<int>& numbers) {
  std::string text;
  for (size_t i = 0, end; i < numbers.size(); i = end) {
    for (end = i + 1; end < numbers.size() && numbers[end] == numbers[end - 1] + 1;) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(numbers[i]);
    if (end > i + 1) text += "-" + std::to_string(numbers[end - 1]);
  }
  return text;
}

// The median of a few writes: a single slow one may be caused by other users of the disk.
double seconds_of_a_file(const std::string& folder) {
  const auto path = std::filesystem::path(folder) / ".easydel-doctor";
  std::vector<double> seconds;
  for (int run = 0; run < 9; ++run) {
    const auto begin = Clock::now();
    files::write(path, std::string(4096, 'x'));
    seconds.push_back(seconds_since(begin));
  }
  files::remove_all(path);
  std::nth_element(seconds.begin(), seconds.begin() + 4, seconds.end());
  return seconds[4];
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string gibibytes(int64_t bytes) { return fixed(double(bytes) / (1 << 30), 1) + " GiB"; }

std::vector<std::string> warnings(const Machine& m) {
  std::vector<std::string> all;
  const auto warn = [&](const std::string& what, const std::string& help) { all.push_back(what + "\n    " + help); };
  if (!m.instruction_sets.empty() && m.instruction_set_in_use != m.instruction_sets.back())
    warn("the kernels run on " + m.instruction_set_in_use + ", but this machine has " + m.instruction_sets.back(),
         "unset EASYDEL_ISA");
  if (m.threads > m.allowed_processors)
    warn(str(m.threads, " threads share ", m.allowed_processors, " processors"),
         str("set OMP_NUM_THREADS=", m.allowed_processors));
  if (m.allowed_processors > m.threads)
    warn(str(m.allowed_processors, " processors are available, but only ", m.threads, " are used"),
         "unset OMP_NUM_THREADS");
  if (m.free_memory_bytes < (int64_t(2) << 30))
    warn("only " + gibibytes(m.free_memory_bytes) + " of memory is free",
         "training needs at least 16 bytes per parameter");
  if (!m.disk_error.empty()) warn("the disk: " + m.disk_error, "choose another folder");
  if (!m.arrow_error.empty()) all.push_back(m.arrow_error);
  if (!m.images_error.empty()) all.push_back(m.images_error);
  if (m.file_seconds > 0.05)
    warn("the disk takes " + fixed(1e3 * m.file_seconds, 0) + " ms to write and sync a small file",
         "checkpoints are synced to disk; save them less often or on another disk");
  return all;
}

}  // namespace

Machine examine(const std::string& folder) {
  Machine m;
  m.processor = proc_value("/proc/cpuinfo", "model name");
  for (const kernels::Isa isa : kernels::available_isas()) m.instruction_sets.emplace_back(kernels::name(isa));
  m.instruction_set_in_use = kernels::name(kernels::isa());
  m.no_tiles = kernels::why_no_tiles();
  m.bf16_order = kernels::name(kernels::bf16_order());
  m.waiting = how_threads_wait();
  m.processors = int(std::thread::hardware_concurrency());
  const std::vector<int> allowed = allowed_processors();
  m.allowed_processors = int(allowed.size());
  m.processor_list = ranges_of(allowed);
  m.threads = kernels::allowed_threads();
  m.memory_bytes = whole_number(proc_value("/proc/meminfo", "MemTotal")) * 1024;
  if (const int64_t limit = group_number("memory.max"); limit > 0 && limit < m.memory_bytes) m.memory_bytes = limit;
  m.free_memory_bytes = free_memory().value_or(FreeMemory{}).bytes;
  m.disk_folder = files::absolute(folder).string();
  try {
    m.file_seconds = seconds_of_a_file(folder);
  } catch (const UserError& error) {
    m.disk_error = error.what();
  }
  try {
    if (data::columnar_library_is_there()) m.arrow = data::columnar_library().version();
  } catch (const UserError& error) {
    m.arrow_error = error.what();
  }
  try {
    if (media::image_decoder_is_there()) m.images = media::image_decoder().versions();
  } catch (const UserError& error) {
    m.images_error = error.what();
  }
  const kernels::Peaks peaks = kernels::measure_peaks(kernels::openmp_executor());
  m.fp32_gflops = peaks.fp32_gflops;
  m.bf16_gflops = peaks.bf16_gflops;
  m.read_gigabytes = peaks.read_gigabytes;
  return m;
}

std::string report(const Machine& m) {
  std::ostringstream out;
  const auto line = [&](std::string_view name, const std::string& value) {
    out << name << std::string(name.size() < 18 ? 18 - name.size() : 1, ' ') << value << '\n';
  };
  line("processor", m.processor);
  line("instruction sets", join(m.instruction_sets, " ") + "; in use: " + m.instruction_set_in_use +
                               (m.no_tiles.empty() ? "" : "; no amx: " + m.no_tiles));
  line("order class", "fp32_chain in fp32, " + m.bf16_order +
                          " in bf16; every instruction set above gives the same bits in a forward pass");
  line("threads", str(m.threads, " on ", m.allowed_processors, " allowed of ", m.processors, " processors (",
                      m.processor_list, ")"));
  line("waiting threads", m.waiting);
  line("memory", gibibytes(m.free_memory_bytes) + " free of " + gibibytes(m.memory_bytes));
  if (m.disk_error.empty())
    line("disk", fixed(1e3 * m.file_seconds, 2) + " ms for a small file with fsync in " + m.disk_folder);
  line("Parquet, Arrow",
       m.arrow.empty() ? "cannot be read: this program was built without Arrow" : "read by Arrow " + m.arrow);
  line("images", m.images.empty() ? "cannot be decoded: this program was built without libjpeg, libpng and libwebp"
                                  : "decoded by " + m.images);
  if (m.fp32_gflops > 0)
    line("measured peak", "fp32 " + fixed(m.fp32_gflops, 0) + " GFLOP/s, bf16 " + fixed(m.bf16_gflops, 0) +
                              " GFLOP/s, reading memory " + fixed(m.read_gigabytes, 1) + " GB/s");
  for (const std::string& warning : warnings(m)) out << "warning: " << warning << '\n';
  return std::move(out).str();
}

int doctor(const std::string& folder) {
  const auto print = [](const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  const Machine machine = examine(folder);
  print(report(machine));
  try {
    print(elarge::core().doctor(machine.fp32_gflops));
  } catch (const UserError& error) {
    print(str("warning: libtorch: ", error.what(), "\n    commands that compute will not run\n"));
  }
  return 0;
}

}  // namespace easydel::cli
