"""What lock files hold: the packages that an installation from them puts in, as their own tools would."""
