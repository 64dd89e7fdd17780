#ifndef PYTHON_FREE_API_MILLRACE_H_
#define PYTHON_FREE_API_MILLRACE_H_

// Everything that a program which builds, trains and runs graphs needs.

#include "core/graph/gradients.h"
#include "core/graph/graph_builder.h"
#include "core/runtime/session.h"
#include "distributed/strategy/data_parallel_ps.h"
#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/nn_ops.h"
#include "ops/state_ops.h"
#include "python_free_api/dataset.h"
#include "python_free_api/flags.h"
#include "python_free_api/layers.h"
#include "python_free_api/local_cluster.h"
#include "python_free_api/optimizer.h"
#include "python_free_api/placement_view.h"
#include "python_free_api/prefetch.h"
#include "python_free_api/runtime.h"
#include "python_free_api/saver.h"
#include "python_free_api/trainer.h"
#include "python_free_api/variables.h"

#endif  // PYTHON_FREE_API_MILLRACE_H_
