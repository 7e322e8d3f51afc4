// A module with the programs of a release. They do nothing and have one dependency. Tests have
// two releases of it, which `make programs-all` makes.
module ebbtide.dev/ebbtide

go 1.26.0

require github.com/go-logr/logr v1.4.4
