// Package catalog keeps the packages that a project can deploy: it reads them safely, says who sees which, and finds the
// package of a class.
//
// A package is a zip, or a folder, with manifest.yaml, Classes/, Resources/, UI/ and logos. What Murano accepts is accepted;
// the rules are those of Murano's packages/* (murano/packages/load_utils.py, mpl_package.py, hot_package.py).
//
// The core library, io.murano with its classes Instance, Volume, HeatStack and so on, is YAML in catalog/apps/io.murano/Classes; what of it has
// its body in Go is in catalog/core, and in orchestrator/native where it needs a cloud.
package catalog
