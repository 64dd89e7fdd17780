#ifndef PYTHON_FREE_API_VIEW_SOURCES_H_
#define PYTHON_FREE_API_VIEW_SOURCES_H_

namespace millrace {

// The files of python_free_api/view, built into the program.
extern const char kPlacementCss[];
extern const char kPlacementJs[];

}  // namespace millrace

#endif  // PYTHON_FREE_API_VIEW_SOURCES_H_
