#include "easydel/data/row_images.h"

#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "easydel/data/columnar.h"
#include "easydel/data/inform_reader.h"
#include "easydel/media/image_decoder.h"
#include "easydel/text/tokenizers/charsmap.h"
#include "support/data.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;

std::string file_of(std::string_view name) { return test::read_file(test::test_data("images") / name); }

Row row_of(const std::string& json) { return {parse_json(json), "rows.jsonl:3"}; }
Row row_with(const Value& image) {
  Row out{Value::map(), "rows.jsonl:3"};
  out.fields.set("image", image);
  return out;
}
ImageRules rules() {
  ImageRules out;
  out.fields = {"image", "images"};
  out.inform = "mixture.informs[0]";
  return out;
}
RowImages taken(Row row) { return take_images(row, rules(), test::test_data("images")); }

// "NAME 29x19", one after the other.
std::string found(Row row) {
  std::string out;
  const RowImages images = taken(std::move(row));
  for (const RowImage& image : images.images) {
    const media::ImageHeader header = header_of(images, image);
    out += str(out.empty() ? "" : ", ", image.name, " ", header.upright_width(), "x", header.upright_height());
  }
  return out;
}
std::string refused(Row row) {
  return test::refusal([&] { found(std::move(row)); });
}

TEST(RowImages, AreGivenInManyForms) {
  const std::string png = file_of("rgb.png"), coded = text::encode_base64(png);
  EXPECT_EQ(found(row_of(R"({"image": "rgb.png"})")), "rgb.png 29x19");
  EXPECT_EQ(found(row_of(R"({"image": {"path": "turned_6.jpg"}})")), "turned_6.jpg 19x29");
  EXPECT_EQ(found(row_of(R"({"images": ["grey.png", {"bytes": null, "path": "deep_2.png"}]})")),
            "grey.png 23x13, deep_2.png 9x7");
  EXPECT_EQ(found(row_with(Value::text(png))), "image 1 29x19");
  EXPECT_EQ(found(row_with(Value::text(coded))), "image 1 29x19");
  EXPECT_EQ(found(row_with(Value::text(coded.substr(0, 60) + "\n" + coded.substr(60)))), "image 1 29x19");
  EXPECT_EQ(found(row_with(Value::text("data:image/png;base64," + coded))), "image 1 29x19");
  Value both = Value::map();
  both.set("bytes", Value::text(png));
  both.set("path", Value::text("elsewhere.png"));
  EXPECT_EQ(found(row_with(both)), "elsewhere.png 29x19");
}

// A text without NUL bytes is a path, even if it begins as the files of a format do.
TEST(RowImages, MayBeCalledAsAFormatBegins) {
  const test::TemporaryFolder folder;
  for (const char* name : {"GIF89a.png", "RIFF.png"}) {
    test::write_file(folder / name, file_of("rgb.png"));
    Row row = row_with(Value::text(name));
    const RowImages images = take_images(row, rules(), folder.path());
    EXPECT_EQ(header_of(images, images.images.at(0)).width, 29) << name;
  }
}

TEST(RowImages, AreFoundInMessages) {
  Row own = row_of(R"({"messages": [{"role": "user", "content": [
      {"type": "image", "image": "rgb.png"}, {"type": "text", "text": "What?"},
      {"type": "image_url", "image_url": {"url": "grey.png"}}]}, {"role": "assistant", "content": "A gradient."}]})");
  const RowImages images = take_images(own, rules(), test::test_data("images"));
  ASSERT_EQ(images.images.size(), 2u);
  EXPECT_EQ(images.images[0].name, "rgb.png");
  EXPECT_EQ(images.images[1].name, "grey.png");
  // Templates get the parts alone.
  EXPECT_EQ(to_json(own.fields),
            R"({"messages": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What?"}, )"
            R"({"type": "image"}]}, {"role": "assistant", "content": "A gradient."}]})");
  const std::string one = R"({"messages": [{"role": "user", "content": [{"type": "image"}]}], "images": )";
  EXPECT_EQ(found(row_of(one + R"(["rgb.png"]})")), "rgb.png 29x19");
  EXPECT_EQ(refused(row_of(one + R"(["rgb.png", "grey.png"]})")),
            "rows.jsonl:3: its messages have 1 image, and 'images' has 2\n"
            "    give as many images as there are parts {type: image}");
}

TEST(RowImages, AreTurnedAndResized) {
  Row row = row_of(R"({"image": "turned_6.jpg"})");
  ImageRules sized = rules();
  const RowImages plain = taken(row);
  EXPECT_EQ(decoded(plain, plain.images[0]).height, 29);
  sized.size = {12, 20};
  const RowImages resized = take_images(row, sized, test::test_data("images"));
  const media::Image image = decoded(resized, resized.images[0]);
  EXPECT_EQ(image.width, 20);
  EXPECT_EQ(image.height, 12);
  EXPECT_EQ(image.pixels.size(), size_t(20 * 12 * 3));
}

TEST(RowImages, RefuseWhatTheyAreNot) {
  const std::string start = "rows.jsonl:3: ";
  const std::string forms =
      start + "image 1 is neither a path, nor bytes, nor {bytes, path}, nor base64\n    give it in one of these forms";
  EXPECT_EQ(refused(row_of(R"({"image": 3})")), forms);
  EXPECT_EQ(refused(row_of(R"({"image": ""})")), forms);
  EXPECT_EQ(refused(row_of(R"({"image": {"bytes": null}})")), forms);
  EXPECT_EQ(refused(row_of(R"({"image": null, "text": "x"})")),
            start + "the row has no image\n    name the field with the images by mixture.informs[0].pixel_field");
  EXPECT_EQ(test::replaced(refused(row_of(R"({"image": "gone.png"})")), test::test_data("images").string(), "DIR"),
            start +
                "image 'gone.png': there is no such file in DIR\n"
                "    paths begin in the folder of the file that lists the images");
  EXPECT_EQ(refused(row_of(R"({"image": "https://x.org/a.png"})")),
            start +
                "image 'https://x.org/a.png': images are not fetched from the network\n"
                "    fetch it, and give its path from the folder of the file that lists it");
  EXPECT_EQ(refused(row_of(R"({"image": "animated.gif"})")),
            start + "image 'animated.gif': GIF images are not read\n    convert it to PNG, JPEG or WebP");
  EXPECT_EQ(refused(row_of(R"({"image": "data:image/png,abc"})")),
            start + "image 1 is a data: address without base64\n    write it as data:image/png;base64,...");
  EXPECT_EQ(refused(row_of(R"({"image": "data:image/png;base64,a b"})")),
            start + "image 1 is not base64\n    encode the image's file again");
  ImageRules needed = rules();
  needed.fields = {"picture"}, needed.is_needed = true;
  Row row = row_of(R"({"image": "rgb.png"})");
  EXPECT_EQ(test::refusal([&] { take_images(row, needed, "."); }),
            start +
                "the row has no field 'picture'; it has: image\n"
                "    name the field with the images by mixture.informs[0].pixel_field");
}

// Names, sizes and texts of the rows of an inform, a line each.
std::string rows_of(const InformConfig& inform) {
  DatasetOptions options;
  options.informs = {inform};
  const Prepare nothing = with_images([](const TypedRow&) { return Prepared(); });
  std::string out;
  InformReader(options, 0, nothing).read([&](PreparedRow& row) {
    if (row.error) throw *row.error;
    out += row.row.text.scalar + (row.prepared.is_image_alone ? "(alone)" : "") + ":";
    for (const RowImage& image : row.row.images->images) {
      const media::ImageHeader header = header_of(*row.row.images, image);
      out += str(" ", image.name, " ", header.upright_width(), "x", header.upright_height());
    }
    out += "\n";
    return true;
  });
  return out;
}

class InformsWithImages : public testing::Test {
 protected:
  void SetUp() override {
    if (!media::image_decoder_is_there()) GTEST_SKIP() << "built without libjpeg, libpng and libwebp";
  }
  const test::TemporaryFolder folder_;
};

TEST_F(InformsWithImages, AreParquetFilesOfDatasets) {
  if (!columnar_library_is_there()) GTEST_SKIP() << "built without Arrow";
  InformConfig inform;
  inform.data_files = {test::test_data("columnar/images.parquet").string()};
  inform.pixel_field = "images", inform.content_field = "caption";
  EXPECT_EQ(rows_of(inform), "a gradient: turned_6.jpg 19x29\ntwo gradients: rgba.png 29x19 lossy.webp 29x19\n");
}

TEST_F(InformsWithImages, AreMembersOfATar) {
  for (const auto& [name, from] : {std::pair{"1.jpg", "grey.jpg"}, {"2.jpg", "turned_8.jpg"}})
    test::write_file(folder_ / "in" / name, file_of(from));
  test::write_file(folder_ / "in/1.txt", "grey");
  ASSERT_EQ(
      test::run({"tar", "cf", (folder_ / "a.tar").string(), "-C", (folder_ / "in").string(), "1.jpg", "1.txt", "2.jpg"})
          .status,
      0);
  InformConfig inform;
  inform.type = "visual", inform.data_files = {(folder_ / "a.tar").string()};
  EXPECT_EQ(rows_of(inform), "(alone): 1.jpg 23x13\n(alone): 2.jpg 19x29\n");
  inform.format_fields = {{"txt", "text"}};
  inform.data_files = {(folder_ / "a.tar").string()}, inform.num_rows = 1;
  EXPECT_EQ(rows_of(inform), "grey: 1.jpg 23x13\n");
}

TEST_F(InformsWithImages, AreListedByAFileBesideThem) {
  test::write_file(folder_ / "pictures/a.png", file_of("rgb.png"));
  test::write_file(folder_ / "rows.csv", "picture,caption\npictures/a.png,a gradient\n");
  InformConfig inform;
  inform.pixel_field = "picture", inform.content_field = "caption",
  inform.data_files = {(folder_ / "rows.csv").string()};
  EXPECT_EQ(rows_of(inform), "a gradient: pictures/a.png 29x19\n");
  // A broken image is an error of its row.
  test::write_file(folder_ / "pictures/a.png", file_of("cut.png"));
  EXPECT_EQ(test::replaced(test::refusal([&] { rows_of(inform); }), folder_.path().string(), "DIR"),
            "DIR/rows.csv:2: image 'pictures/a.png': the PNG image cannot be decoded: it ends too early\n"
            "    the file is cut off or broken: fetch it again, or drop the row");
}

}  // namespace
}  // namespace easydel::data
