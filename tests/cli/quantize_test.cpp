// `easydel quantize`: a model in codes that loads, and what it refuses.
#include <gtest/gtest.h>

#include <map>

#include "easydel/base/error.h"
#include "support/data.h"

namespace easydel::cli {
namespace {

namespace fs = std::filesystem;
using test::run_program;

std::string model() { return test::test_data("hf_goldens/llama").string(); }

TEST(Quantize, WritesFoldersThatAreReadAsTheyAreSaid) {
  for (const char* to : {"nf4", "int8", "fp8", "w4a16", "mxfp4"}) {
    const test::TemporaryFolder folder;
    const std::string out = (folder / "out").string();
    const test::Ran made = run_program({"quantize", model(), "--to", to, "--out", out});
    ASSERT_EQ(made.status, 0) << made.err;
    EXPECT_NE(made.out.find(str(" weights in ", to, ": ")), std::string::npos) << made.out;
    const test::Ran described = run_program({"describe", "model", out});
    ASSERT_EQ(described.status, 0) << described.err;
    EXPECT_NE(described.out.find(std::string_view(to) == "nf4" ? "bitsandbytes, nf4" : ""), std::string::npos);
    const test::Ran again = run_program({"quantize", out, "--to", to, "--out", (folder / "again").string()});
    EXPECT_NE(again.status, 0);
    const std::map<std::string, const char*> formats = {
        {"nf4", "bitsandbytes, nf4, blocks of 64"}, {"int8", "compressed-tensors, 8 bits"}, {"fp8", "fp8"},
        {"w4a16", "compressed-tensors, 4 bits"},    {"mxfp4", "compressed-tensors, mxfp4"},
    };
    EXPECT_EQ(again.err, str(out, ": is in codes already (", formats.at(to), ")\n    give the unquantized model\n"));
    EXPECT_FALSE(fs::exists(folder / "again"));
  }
}

TEST(Quantize, RefusesWhatItCannotDo) {
  const test::TemporaryFolder folder;
  const std::string out = (folder / "out").string();
  const auto refused = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"quantize", model(), "--out", out};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const test::Ran ran = run_program(arguments);
    EXPECT_NE(ran.status, 0);
    EXPECT_FALSE(fs::exists(folder / "out"));
    return ran.err;
  };
  EXPECT_EQ(refused({"--to", "gptq"}),
            "--to: 'gptq' chooses its codes by calibration, which is not built yet\n"
            "    these round to nearest: nf4, fp4, int8, w4a16, fp8, mxfp4, q4_0, q8_0\n");
  EXPECT_NE(refused({"--pattern", "nothing"}).find("--pattern: no linear layer is called as 'nothing' asks"),
            std::string::npos);
  EXPECT_NE(refused({"--pattern", "("}).find("--pattern: '(' is not a regular expression"), std::string::npos);
  EXPECT_NE(refused({"--to", "q8_0", "--pattern", "mlp"}).find("--pattern: a GGUF file is written in one format"),
            std::string::npos);
  EXPECT_NE(refused({"--to", "q8_0", "--max-shard-size", "1MB"}).find("--max-shard-size: a GGUF file is not cut"),
            std::string::npos);
  fs::create_directories(folder / "out");
  test::write_file(folder / "out/file", "x");
  const test::Ran full = run_program({"quantize", model(), "--out", out});
  EXPECT_NE(full.err.find("exists and is not empty"), std::string::npos) << full.err;
}

// The folder that was not there is not there afterwards; one that was there is empty again.
TEST(Quantize, LeavesNothingOnAFullDisk) {
  for (const bool exists : {false, true})
    for (const char* fault : {"write:1:ENOSPC", "write:3:ENOSPC", "write:5:ENOSPC", "any:20:ENOSPC"}) {
      const test::TemporaryFolder folder;
      if (exists) fs::create_directories(folder / "out");
      const test::Ran ran = run_program(
          {"quantize", test::test_data("models/stories260K-hf").string(), "--out", (folder / "out").string()},
          {.environment = {{"EASYDEL_FAULT", fault}}});
      EXPECT_NE(ran.status, 0) << fault;
      EXPECT_NE(ran.err.find("No space left on device"), std::string::npos) << ran.err;
      EXPECT_EQ(fs::exists(folder / "out"), exists) << fault;
      if (exists) {
        EXPECT_TRUE(fs::is_empty(folder / "out")) << fault;
      }
    }
}

}  // namespace
}  // namespace easydel::cli
