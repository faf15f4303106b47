#!/usr/bin/perl -w
use strict;
my %by;
while (<STDIN>) { push @{$by{$1}}, $2 if /^(\w+): (.*)$/ }
print "$_: ", join("; ", @{$by{$_}}), "\n" for sort keys %by;
