// Package lint finds what will trouble the next drain, whenever that is: it looks at all
// applications of a cluster and asks for no node.
//
// A budget that holds a pod up for the moment is no finding: it opens again. What others
// have written is shown in one line each.
package lint
