"""The measurements behind `./dev bench`: the product beside other ways to keep files, in one run."""
