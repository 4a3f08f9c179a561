package ops

// What tests of the package look at from outside.
const PurgeTold = purgeTold

// Remove is what purge does.
var Remove = remove
