// Package download fetches official programs of Kubernetes whose SHA-256 is pinned in
// checksums.txt. A file exists at its destination only if its checksum is right. ErrUnavailable
// means that a build from source may replace the download; a wrong checksum must stop the
// caller. Sizes and times are bounded.
package download
