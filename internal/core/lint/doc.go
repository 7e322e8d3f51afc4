// Package lint finds what will cause trouble in the next drain of any node. It checks all
// applications of a cluster. A budget that is exhausted for the moment is no finding. Foreign text
// is shown in one line each.
package lint
