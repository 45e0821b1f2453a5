// The first line is a config.json, the rest a safetensors file: refused, or each weight in codes can be decoded.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/quant/coded_folder.h"
#include "easydel/quant/file_format.h"

namespace {

// A folder of this process, which is written anew for every input.
const std::filesystem::path& folder_of_process() {
  static const std::filesystem::path folder = [] {
    const auto path = std::filesystem::temp_directory_path() / ("coded_folder_fuzz." + std::to_string(::getpid()));
    std::filesystem::create_directory(path);
    return path;
  }();
  return folder;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace easydel;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t line = std::min(text.find('\n'), size);
  try {
    const std::filesystem::path path = folder_of_process();
    std::ofstream(path / "model.safetensors", std::ios::binary) << text.substr(std::min(line + 1, size));
    const quant::CodedFolder folder =
        quant::open_coded(path, parse_json(text.substr(0, line), "config.json"), "config.json");
    const auto decode = [](const quant::CodedWeight& weight) {
      weight.check_scales();
      auto row = std::vector<float>(size_t(weight.k()));
      for (const int64_t r : {int64_t(0), weight.rows() - 1}) weight.decode(r, 1, 1, row.data());
    };
    for (const auto& [name, weight] : folder.all_codes()) decode(*weight);
    for (const std::string& name : folder.names())
      if (name.ends_with("_blocks") && folder.folder().has(name.substr(0, name.size() - 7) + "_scales"))
        decode(*quant::read_mxfp4(name, folder.at(name), folder.at(name.substr(0, name.size() - 7) + "_scales")));
  } catch (const UserError&) {
  }
  return 0;
}
