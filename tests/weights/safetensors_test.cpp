#include "easydel/weights/safetensors.h"
#include "easydel/weights/folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <set>
#include <span>

#include "easydel/base/files.h"
#include "support/data.h"

namespace easydel::weights {
namespace {

using test::refusal;

constexpr const char* again = "\n    the file is damaged or was not written as safetensors; fetch or save it again";
constexpr const char* cut = "\n    the file is truncated; fetch or save it again";

// A file with this header and this many bytes of data.
std::string file_of(const std::string& header, size_t data) {
  std::string out(8, '\0');
  for (int i = 0; i < 8; ++i) out[i] = static_cast<char>(static_cast<uint64_t>(header.size()) >> (8 * i));
  return out + header + std::string(data, 'x');
}

std::string refused(const std::string& bytes) {
  return refusal([&] { parse_header(std::as_bytes(std::span(bytes)), "f"); });
}
std::string refused(const std::string& header, size_t data) { return refused(file_of(header, data)); }

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, int begin, int end) {
  return str("\"", name, "\":{\"dtype\":\"", dtype, "\",\"shape\":", shape, ",\"data_offsets\":[", begin, ",", end,
             "]}");
}

OutTensor out_tensor(std::string name, DType dtype, std::vector<int64_t> shape, std::string bytes) {
  return {std::move(name), dtype, std::move(shape), [bytes](auto& sink) { sink(bytes.data(), bytes.size()); }};
}

std::string bytes_of(const TensorView& view) {
  return {reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size()};
}

TEST(Safetensors, ReadsWhatUpstreamWrites) {
  auto file = SafetensorsFile::open(test::test_data("weights/upstream.safetensors"));
  EXPECT_EQ(file->header().metadata.at("format"), "pt");
  EXPECT_EQ(file->header().tensors.size(), 8u);
  TensorView view = file->at("b.bf16");
  EXPECT_EQ(view.dtype, DType::bf16);
  EXPECT_EQ(view.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(view.elements(), 6);
  float expected[] = {1.5f, -2.0f};
  EXPECT_EQ(0, std::memcmp(file->at("a.f32").bytes.data(), expected, 8));
  EXPECT_TRUE(file->at("scalar").shape.empty());
  EXPECT_EQ(file->at("scalar").elements(), 1);
  EXPECT_EQ(file->at("empty").elements(), 0);
  EXPECT_EQ(file->at("empty").bytes.size(), 0u);
}

TEST(Safetensors, WritesTheBytesThatUpstreamWrites) {
  auto file = SafetensorsFile::open(test::test_data("weights/upstream.safetensors"));
  std::vector<OutTensor> tensors;
  for (auto& [name, entry] : file->header().tensors)
    tensors.push_back(out_tensor(name, entry.dtype, entry.shape, bytes_of(file->at(name))));
  test::TemporaryFolder folder;
  write_safetensors(folder / "ours.safetensors", tensors);
  EXPECT_EQ(test::read_file(folder / "ours.safetensors"),
            test::read_file(test::test_data("weights/upstream.safetensors")));
}

TEST(Safetensors, KeepsTheMappingAliveWhileATensorIsUsed) {
  TensorView view = SafetensorsFile::open(test::test_data("weights/upstream.safetensors"))->at("u8");
  EXPECT_EQ(bytes_of(view), std::string("\0\1\2\3\4", 5));
}

TEST(Safetensors, RefusesFilesThatAreCutShort) {
  EXPECT_EQ(refused("abc"), std::string("f: is 3 bytes long; a safetensors file has at least 8") + again);
  std::string whole = file_of("{" + entry("a", "U8", "[4]", 0, 4) + "}", 4);
  EXPECT_EQ(refused(whole), "(nothing was refused)");
  EXPECT_EQ(refused(whole.substr(0, 20)),
            std::string("f: says that its header has 53 bytes, but only 12 follow") + cut);
  EXPECT_EQ(refused(whole.substr(0, whole.size() - 1)),
            std::string("f: tensor 'a' ends at byte 4 of the data, but there are only 3") + cut);
}

TEST(Safetensors, RefusesAHeaderOverTheCap) {
  std::string bytes(16, '\0');
  bytes[3] = 0x7f;
  EXPECT_EQ(refused(bytes),
            std::string("f: says that its header has 2130706432 bytes; at most 100000000 are allowed") + again);
}

TEST(Safetensors, RefusesWhatIsNoJson) {
  EXPECT_EQ(refused(" {}", 0), std::string("f: its header does not begin with '{'") + again);
  EXPECT_TRUE(refused("{\"a\":", 0).starts_with("f: its header is not valid JSON: "));
  EXPECT_TRUE(refused("{\"\xff\":1}", 0).starts_with("f: its header is not valid JSON: "));
  EXPECT_TRUE(refused("{} x", 0).starts_with("f: its header is not valid JSON: "));
  EXPECT_EQ(refused("{}   ", 0), "(nothing was refused)");
}

TEST(Safetensors, RefusesTensorsThatAreDescribedBadly) {
  EXPECT_EQ(refused("{\"a\":1}", 0), std::string("f: tensor 'a' is described by no JSON object") + again);
  EXPECT_EQ(refused("{\"a\":{\"shape\":[],\"data_offsets\":[0,1]}}", 1),
            std::string("f: tensor 'a' has no 'dtype'") + again);
  EXPECT_EQ(refused("{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1),
            std::string("f: tensor 'a' has no 'shape'") + again);
  EXPECT_EQ(refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1),
            std::string("f: tensor 'a' has no 'data_offsets'") + again);
  EXPECT_EQ(refused("{" + entry("a", "F4", "[2]", 0, 1) + "}", 1),
            "f: tensor 'a' has the dtype 'F4', which is not known\n    known: BOOL, U8, I8, I16, U16, I32, U32, I64, "
            "U64, F16, "
            "BF16, F32, F64, F8_E4M3, F8_E5M2");
  EXPECT_EQ(refused("{" + entry("a", "U8", "[-1]", 0, 1) + "}", 1),
            std::string("f: tensor 'a': a size is not a whole number from 0 up") + again);
  EXPECT_EQ(refused("{" + entry("a", "U8", "[1.5]", 0, 1) + "}", 1),
            std::string("f: tensor 'a': a size is not a whole number from 0 up") + again);
}

TEST(Safetensors, RefusesShapesThatDoNotFillTheirBytes) {
  EXPECT_EQ(refused("{" + entry("a", "F32", "[2]", 0, 4) + "}", 4),
            std::string("f: tensor 'a': F32 [2] does not fill its bytes 0 to 4") + again);
  EXPECT_EQ(refused("{" + entry("a", "F32", "[1]", 4, 0) + "}", 4),
            std::string("f: tensor 'a': F32 [1] does not fill its bytes 4 to 0") + again);
  EXPECT_EQ(
      refused("{" + entry("a", "F32", "[4611686018427387904, 4611686018427387904]", 0, 0) + "}", 0),
      std::string("f: tensor 'a': F32 [4611686018427387904, 4611686018427387904] does not fill its bytes 0 to 0") +
          again);
}

TEST(Safetensors, RefusesHolesAndOverlaps) {
  std::string a = entry("a", "U8", "[4]", 0, 4);
  EXPECT_EQ(refused("{" + a + "," + entry("b", "U8", "[4]", 2, 6) + "}", 6),
            std::string("f: tensors 'a' and 'b' overlap") + again);
  EXPECT_EQ(refused("{" + a + "," + entry("b", "U8", "[2]", 6, 8) + "}", 8),
            std::string("f: bytes 4 to 6 of the data belong to no tensor") + again);
  EXPECT_EQ(refused("{" + a + "}", 9), std::string("f: bytes 4 to 9 of the data belong to no tensor") + again);
}

TEST(Safetensors, RefusesNamesThatStandTwice) {
  std::string a = entry("a", "U8", "[0]", 0, 0);
  EXPECT_EQ(refused("{" + a + "," + a + "}", 0), std::string("f: tensor 'a' is in the header twice") + again);
  EXPECT_EQ(refused("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0),
            std::string("f: '__metadata__': 'k' is listed twice") + again);
  EXPECT_EQ(refused("{\"__metadata__\":{\"k\":1}}", 0), std::string("f: '__metadata__': 'k' is not a string") + again);
  EXPECT_EQ(refused("{\"__metadata__\":[]}", 0), std::string("f: has a bad '__metadata__'") + again);
}

TEST(Safetensors, RefusesATensorThatIsNotThere) {
  auto path = test::test_data("weights/upstream.safetensors");
  EXPECT_EQ(refusal([&] { SafetensorsFile::open(path)->at("lm_head.weight"); }),
            path.string() + ": has no tensor 'lm_head.weight'\n    it has 8 other tensors");
}

TEST(Safetensors, GivesACheckForAWriterThatGivesTooLittle) {
  test::TemporaryFolder folder;
  std::vector<OutTensor> tensors = {out_tensor("a", DType::f32, {2}, "1234")};
  EXPECT_THROW(write_safetensors(folder / "x.safetensors", tensors), Bug);
  EXPECT_FALSE(std::filesystem::exists(folder / "x.safetensors"));
}

TEST(Safetensors, MakesTensorsWhileEarlierOnesAreWritten) {
  std::vector<std::string> made;
  std::atomic<int> alive = 0, most = 0;
  const auto tensor = [&](const std::string& name, bool is_made) {
    OutTensor out = out_tensor(name, DType::u8, {int64_t(3 * name.size())}, name + name + name);
    if (!is_made) return out;
    out.write = {};
    out.make = [&, name] {
      made.push_back(name);
      most = std::max<int>(most, ++alive);
      const std::shared_ptr<const std::string> owner(new std::string(name + name + name), [&](const std::string* of) {
        delete of;
        --alive;
      });
      return HeldBytes{owner, std::as_bytes(std::span(*owner))};
    };
    return out;
  };
  const test::TemporaryFolder folder;
  const std::vector<std::string> names = {"a", "bb", "c", "dd", "e", "ff"};
  std::vector<OutTensor> written, some_made;
  for (const std::string& name : names) {
    written.push_back(tensor(name, false));
    some_made.push_back(tensor(name, name != "c"));
  }
  write_safetensors(folder / "written.safetensors", written);
  write_safetensors(folder / "made.safetensors", some_made);
  EXPECT_EQ(test::read_file(folder / "made.safetensors"), test::read_file(folder / "written.safetensors"));
  EXPECT_EQ(made, (std::vector<std::string>{"a", "bb", "dd", "e", "ff"}));
  EXPECT_EQ(alive, 0);
  EXPECT_LE(most, 2);
}

TEST(Safetensors, IsNotWrittenIfATensorCannotBeMade) {
  const test::TemporaryFolder folder;
  std::vector<OutTensor> tensors = {out_tensor("a", DType::u8, {1}, "x"), out_tensor("b", DType::u8, {1}, "x"),
                                    out_tensor("c", DType::u8, {1}, "x")};
  tensors[1].make = [] { return HeldBytes{nullptr, std::as_bytes(std::span("x", 1))}; };
  tensors[2].make = []() -> HeldBytes { throw UserError("c", "is spoiled"); };
  EXPECT_EQ(refusal([&] { write_safetensors(folder / "x.safetensors", tensors); }), "c: is spoiled");
  EXPECT_FALSE(std::filesystem::exists(folder / "x.safetensors"));
}

class Shards : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<OutTensor> tensors = {out_tensor("one", DType::u8, {4}, "1111"),
                                      out_tensor("two", DType::u8, {4}, "2222"),
                                      out_tensor("three", DType::u8, {6}, "333333")};
    write_folder(folder.path(), tensors, 8);
  }
  std::string where(const char* name) { return (folder / name).string(); }
  test::TemporaryFolder folder;
};

TEST_F(Shards, AreWrittenWithTheirIndexAndReadBack) {
  EXPECT_TRUE(Folder::has_weights(folder.path()));
  Folder weights = Folder::open(folder.path());
  EXPECT_EQ(weights.names(), (std::vector<std::string>{"one", "three", "two"}));
  EXPECT_EQ(bytes_of(weights.at("two")), "2222");
  EXPECT_EQ(weights.where("three"), where("model-00002-of-00002.safetensors") + ": three");
  EXPECT_EQ(refusal([&] { weights.at("four"); }),
            folder.path().string() + ": has no tensor 'four'\n    its weights are 3 other tensors");
}

TEST_F(Shards, MustAllBeThere) {
  files::remove_all(folder / "model-00002-of-00002.safetensors");
  EXPECT_EQ(refusal([&] { Folder::open(folder.path()); }),
            where("model-00002-of-00002.safetensors") +
                ": is missing; model.safetensors.index.json names it\n    fetch the model again");
}

TEST_F(Shards, MustHoldWhatTheIndexSays) {
  std::vector<OutTensor> others = {out_tensor("other", DType::u8, {1}, "x")};
  write_safetensors(folder / "model-00002-of-00002.safetensors", others);
  EXPECT_EQ(refusal([&] { Folder::open(folder.path()); }),
            where("model-00002-of-00002.safetensors") +
                ": has no tensor 'three', which model.safetensors.index.json says it has\n"
                "    the shards belong to different models; fetch the model again");
}

TEST_F(Shards, MustNotHoldMore) {
  std::vector<OutTensor> more = {out_tensor("three", DType::u8, {1}, "x"), out_tensor("one", DType::u8, {1}, "x")};
  write_safetensors(folder / "model-00002-of-00002.safetensors", more);
  EXPECT_EQ(refusal([&] { Folder::open(folder.path()); }),
            where("model-00002-of-00002.safetensors") +
                ": has the tensor 'one', but model.safetensors.index.json says that it is in another file\n"
                "    the shards belong to different models; fetch the model again");
}

TEST(Weights, AreMissedByName) {
  test::TemporaryFolder folder;
  EXPECT_FALSE(Folder::has_weights(folder.path()));
  EXPECT_EQ(refusal([&] { Folder::open(folder.path()); }),
            folder.path().string() +
                ": has no weights (model.safetensors)\n"
                "    give a folder with model.safetensors or its shards and index");
  test::write_file(folder / "training_args.bin", "x");
  EXPECT_FALSE(Folder::has_weights(folder.path()));
  for (const char* name : {"tf_model.h5", "pytorch_model-00001-of-00002.bin"}) {
    test::write_file(folder / name, "x");
    EXPECT_TRUE(Folder::has_weights(folder.path()));
    EXPECT_EQ(refusal([&] { Folder::open(folder.path()); }), folder.path().string() +
                                                                 ": has only weights that are not read (" + name +
                                                                 ")\n    convert them to safetensors");
  }
}

TEST_F(Shards, AndOneFileReplaceEachOther) {
  const auto files = [&] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      names.insert(entry.path().filename().string());
    return names;
  };
  const std::vector<OutTensor> other = {out_tensor("one", DType::u8, {4}, "9999")};
  write_folder(folder.path(), other, 8);
  EXPECT_EQ(files(), (std::set<std::string>{"model.safetensors"}));
  EXPECT_EQ(bytes_of(Folder::open(folder.path()).at("one")), "9999");
  SetUp();
  EXPECT_EQ(files(), (std::set<std::string>{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                                            "model.safetensors.index.json"}));
  EXPECT_EQ(bytes_of(Folder::open(folder.path()).at("one")), "1111");
  // If another program left both, the single file takes precedence, as in transformers.
  write_safetensors(folder / "model.safetensors", other);
  EXPECT_EQ(bytes_of(Folder::open(folder.path()).at("one")), "9999");
}

TEST(Weights, OfOneSmallFolderFitOneFile) {
  test::TemporaryFolder folder;
  std::vector<OutTensor> tensors = {out_tensor("a", DType::u8, {1}, "x")};
  write_folder(folder.path(), tensors, 1000);
  EXPECT_TRUE(std::filesystem::exists(folder / "model.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(folder / "model.safetensors.index.json"));
  EXPECT_EQ(bytes_of(Folder::open(folder.path()).at("a")), "x");
}

TEST(DType, KnowsTheNamesOfFilesAndConfigs) {
  EXPECT_EQ(dtype_of_safetensors("BF16"), DType::bf16);
  EXPECT_EQ(dtype_of_safetensors("bf16"), std::nullopt);
  EXPECT_EQ(dtype_of_config("torch.bfloat16"), DType::bf16);
  EXPECT_EQ(dtype_of_config("FP32"), DType::f32);
  EXPECT_EQ(dtype_of_config("float7"), std::nullopt);
  for (int i = 0; i <= static_cast<int>(DType::f8_e5m2); ++i) {
    auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_of_safetensors(name_of(dtype)), dtype);
  }
}

}  // namespace
}  // namespace easydel::weights
