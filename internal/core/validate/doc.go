// Package validate decides what to answer to an admission request: refused, and
// in which words, or allowed, and with which warnings.
//
// What it needs to know beside the objects, such as what the author of the
// request may do, is part of what it is given. A refusal says who was refused
// what and what would help; a warning never stops anybody. What could not be
// understood is never allowed.
package validate
