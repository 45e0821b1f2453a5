// The images of a row as people look at them.
#pragma once

#include <string>

#include "easydel/base/document.h"
#include "easydel/cli/shown_example.h"
#include "easydel/data/row_images.h"

namespace easydel::cli {

// [{image: cat.png, format: PNG, width: 451, height: 300}, ...], with the size that image_size makes of it as
// resized_width and resized_height.
Value document_of(const data::RowImages& images);

// A line for each image with its name, size and format. A page has the pictures, too, and so has a terminal that says
// it knows 24 bits of color.
std::string shown_images(const data::RowImages& images, Marks marks);

}  // namespace easydel::cli
