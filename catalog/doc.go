// Package catalog stores the packages that a project can deploy: it reads them safely, decides which project sees which, and finds the package of a class.
//
// A package is a zip, or a folder, with manifest.yaml, Classes/, Resources/, UI/ and logos. It accepts every package that Murano accepts; the rules are
// those of Murano's packages/* (murano/packages/load_utils.py, mpl_package.py, hot_package.py).
//
// The core library, io.murano with its classes Instance, Volume, HeatStack and so on, is YAML in catalog/apps/io.murano/Classes. Its Go bodies are in
// catalog/core, and in orchestrator/native where they need a cloud.
package catalog
