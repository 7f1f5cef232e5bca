// Times reductions by Eigen: by its tensors, and by its matrices where the array is one.
//
//     g++ -O3 -DNDEBUG -march=native -std=c++17 -pthread -I /usr/include/eigen3 \
//         -DELEMENT=float benches/eigen_reduce.cpp
//
// `a.out THREADS` reads lines of a pattern, the greatest number of turns and of seconds, and
// answers as the example `patterns` of the crate `native` does.

#define EIGEN_USE_THREADS

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <Eigen/Core>
#include <unsupported/Eigen/CXX11/Tensor>

using Eigen::Index;
using Element = ELEMENT;

struct Task {
  std::vector<Index> dims, axes, order;
  int turns = 0;
  double seconds = 0;
};

static std::vector<Index> numbers(const std::string& text, char between) {
  std::vector<Index> found;
  std::stringstream parts(text);
  for (std::string part; std::getline(parts, part, between);) found.push_back(std::stol(part));
  return found;
}

static Task parse(const std::string& line) {
  Task task;
  std::stringstream words(line);
  std::string pattern, part;
  words >> pattern >> task.turns >> task.seconds;
  std::stringstream parts(pattern);
  if (std::getline(parts, part, '/')) task.dims = numbers(part, 'x');
  if (std::getline(parts, part, '/')) task.axes = numbers(part, ',');
  if (std::getline(parts, part, '/')) task.order = numbers(part, ',');
  return task;
}

// Prints the least time of several, in seconds. Results lie in memory that the work finds.
template <typename Work>
static void time(const char* fold, const Task& task, Work work) {
  using Clock = std::chrono::steady_clock;
  auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  work();
  auto begin = Clock::now();
  double least = std::numeric_limits<double>::infinity();
  for (int turn = 0; turn < task.turns; ++turn) {
    auto start = Clock::now();
    work();
    least = std::min(least, since(start));
    if (turn > 0 && since(begin) > task.seconds) break;
  }
  std::printf("Eigen\t%s\t%.9e\n", fold, least);
}

template <typename T, int RANK, typename Expression, typename Device>
static void evaluate(const Expression& expression, const Eigen::DSizes<Index, RANK>& sizes,
                     Device& device) {
  Eigen::Tensor<T, RANK, Eigen::RowMajor> result(sizes);
  result.device(device) = expression;
  asm volatile("" : : "g"(result.data()) : "memory");
}

// All folds of a tensor, or of an expression that is one.
template <int RANK, int AXES, typename Input, typename Device>
static void folds(const Task& task, const Input& input, Device& device) {
  std::array<Index, AXES> axes;
  std::copy_n(task.axes.begin(), AXES, axes.begin());
  Eigen::DSizes<Index, RANK - AXES> sizes;
  for (int dim = 0, at = 0; dim < RANK; ++dim) {
    if (std::count(axes.begin(), axes.end(), dim) == 0) {
      sizes[at++] = task.dims[task.order.empty() ? dim : task.order[dim]];
    }
  }
  time("sum", task, [&] { evaluate<Element>(input.sum(axes), sizes, device); });
  time("maximum", task, [&] { evaluate<Element>(input.maximum(axes), sizes, device); });
  if constexpr (AXES == 1) {
    time("place", task, [&] { evaluate<Index>(input.argmax(axes[0]), sizes, device); });
  }
}

// Sums and maxima of a matrix, which have no threads and are faster than those of tensors.
template <typename T>
static void matrix(const Task& task, const T* data) {
  using Rows = Eigen::Array<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  // Eigen 3.4 does not compile them for 16 bits.
  if constexpr (sizeof(T) > 2) {
    if (task.dims.size() != 2 || task.axes.size() != 1) return;
    Eigen::Map<const Rows> rows(data, task.dims[0], task.dims[1]);
    auto evaluate = [](const auto& expression) {
      Eigen::Array<T, Eigen::Dynamic, 1> result = expression;
      asm volatile("" : : "g"(result.data()) : "memory");
    };
    Index along = task.order.empty() ? task.axes[0] : task.order[task.axes[0]];
    if (along == 0) {
      time("sum", task, [&] { evaluate(rows.colwise().sum().transpose()); });
      time("maximum", task, [&] { evaluate(rows.colwise().maxCoeff().transpose()); });
    } else {
      time("sum", task, [&] { evaluate(rows.rowwise().sum()); });
      time("maximum", task, [&] { evaluate(rows.rowwise().maxCoeff()); });
    }
  }
}

// Measures what is asked if it has this rank and number of axes.
template <int RANK, int AXES, typename Device>
static void measure(const Task& task, const Element* data, Device& device) {
  if (task.dims.size() != RANK || task.axes.size() != AXES) return;
  Eigen::DSizes<Index, RANK> sizes;
  std::copy_n(task.dims.begin(), RANK, sizes.begin());
  Eigen::TensorMap<const Eigen::Tensor<Element, RANK, Eigen::RowMajor>> tensor(data, sizes);
  if (task.order.empty()) {
    folds<RANK, AXES>(task, tensor, device);
  } else if constexpr (RANK == 2) {
    std::array<Index, RANK> order;
    std::copy_n(task.order.begin(), RANK, order.begin());
    folds<RANK, AXES>(task, tensor.shuffle(order), device);
  }
}

int main(int count, char** arguments) {
  int threads = count > 1 ? std::atoi(arguments[1]) : 1;
  Eigen::ThreadPool pool(threads);
  Eigen::ThreadPoolDevice device(&pool, threads);
  for (std::string line; std::getline(std::cin, line);) {
    Task task = parse(line);
    size_t elements = 1;
    for (Index dim : task.dims) elements *= dim;
    // Arrays begin at a boundary of huge pages.
    const size_t boundary = 1 << 21;
    const size_t least = 1 << 24;
    std::vector<Element> room(std::max(elements * sizeof(Element) + boundary, least) / sizeof(Element));
    Element* data = room.data() + (-reinterpret_cast<uintptr_t>(room.data()) % boundary) / sizeof(Element);
    for (size_t at = 0; at < elements; ++at) data[at] = Element(float(int(at % 1009) - 504));
    matrix(task, data);
    measure<1, 1>(task, data, device);
    measure<2, 1>(task, data, device);
    measure<3, 1>(task, data, device);
    measure<3, 2>(task, data, device);
    measure<5, 2>(task, data, device);
    measure<5, 3>(task, data, device);
    std::printf("\n");
    std::fflush(stdout);
  }
}
