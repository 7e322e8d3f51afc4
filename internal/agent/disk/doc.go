// Package disk keeps what a program has to know after it was killed: small files that are
// replaced as a whole.
//
// Invariants: behind any system call there is the file that was, or the one that is to be;
// nothing but regular files is read, and of those no more than was agreed.
package disk
