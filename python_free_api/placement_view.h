#ifndef PYTHON_FREE_API_PLACEMENT_VIEW_H_
#define PYTHON_FREE_API_PLACEMENT_VIEW_H_

#include <string>

#include "core/graph/graph.h"
#include "core/runtime/planner.h"

namespace millrace {

// A self-contained HTML page (no network, no other file) that shows a placed graph: name scopes
// that open and close, colour by device, edges between devices with their bytes, and for a clicked
// node its op, attributes, shapes, device and the reason for it. `report` may be empty: then
// without reasons and bytes.
std::string PlacementView(const Graph& placed, const PlacementReport& report,
                          absl::string_view title);

}  // namespace millrace

#endif  // PYTHON_FREE_API_PLACEMENT_VIEW_H_
