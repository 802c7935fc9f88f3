// Package images builds the node image: a Debian root file system with all parts of a node of a Kubernetes cluster.
//
// An image is made of pieces, in this order:
//
//   - programs, built from the pinned Go modules below modules/ (each has its own go.mod, so that their dependencies are independent);
//   - container images of some of them, as archives that a node imports without a registry;
//   - a Debian system with the packages of the elements, made with mmdebstrap from the mirrors of the machine's own
//     apt sources;
//   - elements, the folders below elements/: a file "packages", a tree "files" that is copied over the system, and a script
//     "install" that can also be run by hand. They are applied in the order of their names.
//
// That is the tar. A disk that machines boot has the same pieces, and over them the packages and elements below machine/: kernel, devices, clock,
// cloud-init. Programs can be fetched from their projects instead of compiled (prebuilt.yaml).
//
// Each piece is cached under a hash of all its inputs, so that unchanged pieces are not made again.
package images
