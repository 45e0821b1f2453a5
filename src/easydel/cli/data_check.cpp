// `easydel data check`: every bad row of a run's data, and what is worth a warning.
#include "easydel/base/files.h"
#include "easydel/base/names.h"
#include "easydel/cli/commands.h"
#include "easydel/cli/data.h"
#include "easydel/data/check_rows.h"

namespace easydel::cli {
namespace {

std::string line_of(const data::BadRow& row) {
  Value out = Value::map();
  out.set("where", Value::text(row.where));
  out.set("inform", Value::text(row.inform));
  out.set("problem", Value::text(row.problem));
  out.set("remedy", Value::text(row.remedy));
  if (row.warning) out.set("warning", Value::boolean(true));
  return to_json(out) + "\n";
}

std::string text_of(const data::BadRowGroup& group) {
  std::string out =
      str("\n", group.problem, "  (", counted(group.count, "row"), group.warning ? "; a warning)\n" : ")\n");
  if (!group.remedy.empty()) out += "    " + group.remedy + "\n";
  for (const data::BadRow& row : group.first) out += "  " + row.where + (group.alike ? "" : ": " + row.problem) + "\n";
  if (group.count > int64_t(group.first.size()))
    out += str("  ... and ", group.count - int64_t(group.first.size()), " more\n");
  return out;
}

}  // namespace

int run_data_check(const DataCommand& command) {
  const data::RunData data = open_run_data(command);
  std::optional<files::Writer> report;
  if (!command.report.empty()) report.emplace(command.report);
  const data::CheckedRows checked = data::check_rows(data, [&](const data::BadRow& row) {
    if (report) report->write(line_of(row));
  });
  if (report) report->commit();
  if (checked.groups.empty()) return print(counted(checked.rows, "row") + ", all good\n"), 0;
  std::string out = checked.bad == 0 ? counted(checked.rows, "row") + ", all can be used\n"
                                     : str(checked.bad, " of ", counted(checked.rows, "row"),
                                           checked.bad == 1 ? " has a problem\n" : " have problems\n");
  for (const data::BadRowGroup& group : checked.groups) out += text_of(group);
  if (report) out += "\nall of them are in " + command.report + "\n";
  return print(out), checked.bad == 0 ? 0 : 1;
}

}  // namespace easydel::cli
