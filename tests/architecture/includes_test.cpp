// Rules about includes: where expensive headers and torch's are allowed, and that the build's layering check works.
#include <gtest/gtest.h>

#include <set>

#include "architecture/source.h"

namespace easydel::test {
namespace {

const std::vector<std::string> code = {".h", ".cpp", ".cu", ".cuh"};

// "file: header" for every include in src for which `wrong` is true.
template <class Wrong>
std::vector<std::string> includes_where(Wrong wrong) {
  std::vector<std::string> found;
  for (const SourceFile& file : source_files("src/easydel", code)) {
    for (const std::string& header : file.includes()) {
      if (wrong(file, header)) found.push_back(file.path + ": " + header);
    }
  }
  return found;
}

bool in(const SourceFile& file, std::string_view layer) { return file.layer() == layer && file.path.ends_with(".cpp"); }

const std::vector<std::string> none;

TEST(Includes, OfTheWholeOfTorchAreNowhere) {
  EXPECT_EQ(includes_where([](const SourceFile&, const std::string& header) {
              return header == "torch/torch.h" || header == "torch/all.h" || header == "ATen/ATen.h" ||
                     header == "ATen/Functions.h" || header.starts_with("torch/nn") ||
                     header.starts_with("torch/optim") || header.starts_with("torch/csrc/api");
            }),
            none);
}

// tensor/torch.h is for everyone; other uses of ATen go through functions of the layer `tensor`.
TEST(Includes, OfATenExceptOpsAreOnlyInTensor) {
  EXPECT_EQ(includes_where([](const SourceFile& file, const std::string& header) {
              const bool door = file.path == "src/easydel/tensor/torch.h" || in(file, "tensor");
              return header.starts_with("ATen/") && !header.starts_with("ATen/ops/") && !door;
            }),
            none);
}

TEST(Includes, OfAutogradFunctionsAreWhereOpsAreDefined) {
  EXPECT_EQ(includes_where([](const SourceFile& file, const std::string& header) {
              return header == "torch/csrc/autograd/custom_function.h" && !in(file, "ops") && !in(file, "collective") &&
                     file.path != "src/easydel/nn/run_layer.cpp";
            }),
            none);
}

TEST(Includes, OfExpensiveLibrariesAreOnlyInTheirLayers) {
  EXPECT_EQ(includes_where([](const SourceFile& file, const std::string& header) {
              if (header.find("c10d/") != std::string::npos) return !in(file, "collective");
              if (header.starts_with("CLI/")) return !in(file, "cli");
              if (header.starts_with("boost/")) return !in(file, "server");
              if (header.starts_with("arrow/") || header.starts_with("parquet/"))
                return !file.path.starts_with("src/easydel/columnar/");
              if (header == "regex") return file.path != "src/easydel/base/regular_expression.cpp";
              if (header == "easydel/config/tables.h") return !file.path.ends_with("tables.cpp") && !in(file, "config");
              return header.starts_with("nlohmann/") || header.starts_with("spdlog/") ||
                     header.starts_with("pybind11/");
            }),
            none);
}

TEST(Includes, OfTorchAreOnlyInLayersWithTorch) {
  const std::set<std::string> without = {"base", "config", "weights", "text",   "media",
                                         "hub",  "mesh",   "kernels", "server", "cli"};
  EXPECT_EQ(includes_where([&](const SourceFile& file, const std::string& header) {
              const bool torch = header.starts_with("ATen/") || header.starts_with("torch/") ||
                                 header.starts_with("c10/") || header == "easydel/tensor/torch.h";
              const bool split = (file.layer() == "esurge" || file.layer() == "elarge" || file.layer() == "probe") &&
                                 file.path.find("_core.") == std::string::npos && file.path.ends_with(".cpp");
              return torch && (without.contains(file.layer()) || split);
            }),
            none);
}

// The build's own check, on a tree of two layers where `upper` uses `lower`.
struct Layering {
  TemporaryFolder folder;
  Ran check(std::string_view file, std::string_view include) {
    write_file(folder / "layers.txt", "lower:\nupper:lower\n");
    write_file(folder / "src/lower/a.h", "#pragma once\n");
    write_file(folder / "src/upper/b.h", "#pragma once\n#include \"easydel/lower/a.h\"\n");
    write_file(folder / ("src/" + std::string(file)), "#include " + std::string(include) + "\n");
    return run({"cmake", "-D", "layers_file=" + (folder / "layers.txt").string(), "-D",
                "root=" + (folder / "src").string(), "-P", (source_root() / "cmake/check_layers.cmake").string()});
  }
};

TEST(Layering, AllowsTheLayersThatALineNames) {
  const Ran ran = Layering().check("upper/c.cpp", "\"easydel/lower/a.h\"");
  EXPECT_EQ(ran.status, 0) << ran.err;
}

TEST(Layering, RefusesAnIncludeUpwards) {
  const Ran ran = Layering().check("lower/c.cpp", "\"easydel/upper/b.h\"");
  EXPECT_NE(ran.status, 0);
  EXPECT_NE(ran.err.find("lower/c.cpp: layer 'lower' may not include 'upper' (it uses: lower)"), std::string::npos)
      << ran.err;
}

TEST(Layering, RefusesAFolderThatIsNotALayer) {
  const Ran ran = Layering().check("other/c.cpp", "<vector>");
  EXPECT_NE(ran.status, 0);
  EXPECT_NE(ran.err.find("src/easydel/other: is a folder but no layer"), std::string::npos) << ran.err;
}

TEST(Layering, RefusesAnIncludeWithoutThePrefix) {
  const Ran ran = Layering().check("upper/c.cpp", "\"b.h\"");
  EXPECT_NE(ran.status, 0);
  EXPECT_NE(ran.err.find("upper/c.cpp: includes 'b.h' without the prefix easydel/"), std::string::npos) << ran.err;
}

TEST(Layering, LetsAFaceBeIncludedFromAnywhere) {
  Layering tree;
  write_file(tree.folder / "src/upper/thing_config.h", "#pragma once\n");
  const Ran ran = tree.check("lower/c.cpp", "\"easydel/upper/thing_config.h\"");
  EXPECT_EQ(ran.status, 0) << ran.err;
}

}  // namespace
}  // namespace easydel::test
