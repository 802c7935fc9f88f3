// Package images builds the node image: a Debian root file system that holds everything a server needs to become a node of a
// Kubernetes cluster.
//
// An image is made of pieces, in this order:
//
//   - programs, built from the pinned Go modules below modules/ (each has its own go.mod, so that their needs do not meet);
//   - container images of some of them, as archives that a node imports without a registry;
//   - a Debian system with the packages that the elements ask for, made with mmdebstrap from the mirrors of the machine's own
//     apt sources;
//   - elements, the folders below elements/: a file "packages", a tree "files" that is laid over the system, and a script
//     "install" that can as well be run by hand. They are applied in the order of their names.
//
// That is the tar. A disk that machines boot has the same pieces, and over them the packages and elements below machine/: kernel, devices, clock,
// cloud-init. Programs can be fetched from where their projects publish them instead of compiled (prebuilt.yaml).
//
// Each piece is kept in a cache under a hash of all that went into it, so that what has not changed is not made again.
package images
