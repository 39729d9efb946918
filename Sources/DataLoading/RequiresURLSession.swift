#if !URLSession
#error("DataLoading needs the trait URLSession of the package TokenService, which is on unless a manifest says traits: [].")
#endif
