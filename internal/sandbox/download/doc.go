// Package download fetches official programs of Kubernetes whose SHA-256 is pinned in
// checksums.txt. A file exists at its destination only if its checksum is right. ErrUnavailable
// means that a build from source may replace the download; a ChecksumError means that the
// content is wrong, and must stop the caller. Attempts, sizes and waits are bounded.
package download
