// Package download fetches official programs of Kubernetes and verifies them.
//
// A program is named by its version, operating system and architecture. Its SHA-256 is pinned in
// checksums.txt. A program without a pinned checksum is never fetched.
//
// Invariants: a file exists at its destination only if its checksum is right. A download that does
// not arrive (ErrUnavailable) is distinct from one that arrives with other content
// (ChecksumError): the first may be replaced by a build from source, the second must stop.
// Attempts, sizes and silence of the server are bounded.
package download
