// Rows of a table in text, as csv and tsv files are (RFC 4180): the first line names the fields; a field in quotes
// holds separators, line ends (which become \n) and doubled quotes.
#pragma once

#include "easydel/data/rows.h"

namespace easydel::data {

// Like FileSource::read. Every field is a text; an empty one without quotes is null, and so are the missing fields of a
// short row.
bool read_delimited(const std::filesystem::path& file, char separator, const ReadOptions& options, const RowSink& sink);

}  // namespace easydel::data
