// Two documents of results side by side: `easydel eval --compare`.
#pragma once

#include <string>
#include <vector>

#include "easydel/base/document.h"

namespace easydel::elarge {

struct MetricDifference {
  std::string task, metric;
  double before = 0, after = 0;
  double error = 0;  // standard error of the difference: from the two of the results; NaN: they have none
};

struct ChangedDocument {
  std::string task, document;  // its number
  std::string metric;
  double before = 0, after = 0;
};

struct ResultsComparison {
  std::vector<MetricDifference> metrics;
  std::vector<ChangedDocument> documents;  // whose samples have other values of a metric that is 0 or 1
  std::vector<std::string> missing;        // tasks that only one of them has

  double largest() const;  // difference of a metric
  std::string text() const;
};

// UserError if one of them is not a document of results.
ResultsComparison compare_results(const Value& before, const std::string& before_name, const Value& after,
                                  const std::string& after_name);

}  // namespace easydel::elarge
